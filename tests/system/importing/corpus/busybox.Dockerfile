FROM busybox
RUN echo hi
