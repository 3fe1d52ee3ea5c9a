FROM debian:12
RUN <<EOF
apt-get update
apt-get install -y vim
EOF
