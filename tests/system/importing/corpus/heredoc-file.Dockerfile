FROM debian:12
COPY <<EOF /etc/motd
hello
EOF
