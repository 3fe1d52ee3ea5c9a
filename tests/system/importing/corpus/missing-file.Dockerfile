FROM debian:12
COPY nowhere.txt /
