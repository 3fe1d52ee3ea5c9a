FROM debian:12
RUM echo hi
COPPY a b
