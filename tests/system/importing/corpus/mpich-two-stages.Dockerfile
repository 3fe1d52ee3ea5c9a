FROM ubuntu:22.04 AS build
RUN apt-get update && apt-get install -y build-essential
RUN make -C /src install PREFIX=/opt/mpich
FROM ubuntu:22.04
COPY --from=build /opt/mpich /opt/mpich
