FROM node:22-bookworm
WORKDIR /srv
COPY package.json ./
RUN npm install --omit=dev
COPY app app
HEALTHCHECK --interval=30s CMD curl -f http://localhost:8080 || exit 1
VOLUME ["/data"]
STOPSIGNAL SIGINT
EXPOSE 8080/tcp
CMD npm start
