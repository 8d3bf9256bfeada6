# The server, over a log in its folder or in a database that KNEX_URL or MONGO_URL names. What it needs to run, and docs/operating.md, say how.
FROM node:24-bookworm-slim AS build
WORKDIR /minetree
COPY package.json package-lock.json .npmrc ./
COPY packages/client/package.json packages/client/
# Without its scripts: the sources that they would build are not here yet.
RUN npm ci --ignore-scripts
COPY . .
# The client is a package of its own, which the server does not load.
RUN npm run build && npm prune --omit=dev --ignore-scripts && rm -f node_modules/minetree-client

FROM node:24-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 DATA_DIR=/data
WORKDIR /minetree
COPY --from=build /minetree/package.json ./
COPY --from=build /minetree/node_modules ./node_modules
COPY --from=build /minetree/assets ./assets
COPY --from=build /minetree/dist ./dist
RUN install -d -o node -g node /data && chmod +x dist/cli/main.js && ln -s /minetree/dist/cli/main.js /usr/local/bin/minetree
USER node
VOLUME /data
EXPOSE 8080
# The process answers: whether its store does is /health/ready, for whoever sends requests to it.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health/live`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/cli/main.js", "serve"]
