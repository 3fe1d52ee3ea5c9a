FROM golang:1.23 AS builder
WORKDIR /src
COPY . .
RUN go build -o /tool

FROM gcr.io/distroless/static
COPY --from=builder /tool /tool
ENTRYPOINT ["/tool"]
