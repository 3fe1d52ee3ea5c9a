FROM scratch
ADD packed.tar.gz /
CMD ["/hello"]
