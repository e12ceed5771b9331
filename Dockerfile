# One image a service: docker build --build-arg SERVICE=writer .
# The TypeScript sources run as they are; there is no build step.
FROM node:26-slim AS dependencies
WORKDIR /sluice
RUN npm install --global pnpm@12.21.0
COPY package.json pnpm-workspace.yaml pnpm-lock.yaml ./
COPY patches patches
COPY packages/shared/package.json packages/shared/
COPY packages/keys-command/package.json packages/keys-command/
COPY services/ingest-api/package.json services/ingest-api/
COPY services/writer/package.json services/writer/
COPY services/query-api/package.json services/query-api/
ARG SERVICE
RUN test -n "$SERVICE" || { echo "SERVICE must be ingest-api, writer or query-api" >&2; exit 1; }; \
    pnpm install --frozen-lockfile --prod --no-optional --filter "@sluice/$SERVICE..." --filter @sluice/keys-command

FROM node:26-slim
WORKDIR /sluice
ARG SERVICE
ENV NODE_ENV=production SERVICE=$SERVICE HOST=0.0.0.0 PORT=8080
COPY --from=dependencies /sluice ./
COPY LICENSE ./
COPY packages/shared/src packages/shared/src
COPY packages/keys-command/src packages/keys-command/src
COPY services/$SERVICE/src services/$SERVICE/src
# A volume mounted here belongs to the user that the service runs as.
RUN mkdir /etc/sluice && chown node:node /etc/sluice
USER node
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/livez`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# exec: the service itself gets the signals.
CMD ["sh", "-c", "exec node services/$SERVICE/src/main.ts"]
