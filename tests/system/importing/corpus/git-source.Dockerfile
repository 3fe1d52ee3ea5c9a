FROM debian:12
ADD https://github.com/example/tool.git /src
