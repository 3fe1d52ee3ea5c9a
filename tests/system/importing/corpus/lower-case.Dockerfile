from debian:12 as base
maintainer somebody
run echo one; \
# between
    echo two
workdir /a
workdir b
env X=1
