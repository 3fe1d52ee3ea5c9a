FROM rocker/r-ver:4.4.1
RUN R -e "install.packages(c('dplyr', 'ggplot2'))"
RUN Rscript -e 'stopifnot(require(dplyr))'
COPY app/ /home/rstudio/app/
