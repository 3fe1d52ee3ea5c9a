# syntax=example/other-language
FROM debian:12
