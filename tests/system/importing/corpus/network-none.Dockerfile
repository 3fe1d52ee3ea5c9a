FROM debian:12
RUN --network=none echo offline
COPY --link requirements.txt /opt/
