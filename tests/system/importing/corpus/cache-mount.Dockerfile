FROM python:3.12-slim
WORKDIR /app
RUN --mount=type=cache,target=/root/.cache/pip pip install numpy
RUN --mount=type=secret,id=token cat /run/secrets/token
