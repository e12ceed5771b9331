# One image per service: docker build --build-arg SERVICE=writer .
# The TypeScript sources run as they are; only the console of query-api is built. The build needs BuildKit (or podman).
#
# For another architecture, or several at once; docs/operate/deploy.md has the whole command:
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg SERVICE=writer .
#
# Behind a registry or a proxy of your own, pass its configuration as secrets; they leave no trace in the image. The base
# image may come from elsewhere as well, with --build-arg NODE_IMAGE=…@sha256:….
#   docker build --build-arg SERVICE=writer --secret id=npmrc,src=$HOME/.npmrc --secret id=ca,src=ca.pem .
ARG NODE_IMAGE=node:26.10.0-trixie-slim@sha256:ec7758ee051e457b468b32bde57b0879010b325bb9862718e9615225ce4aaae1

# Packages are the same on every architecture, so they are installed on that of the build.
FROM --platform=$BUILDPLATFORM $NODE_IMAGE AS dependencies
WORKDIR /sluice
COPY package.json pnpm-workspace.yaml pnpm-lock.yaml ./
COPY patches patches
COPY packages/shared/package.json packages/shared/
COPY packages/submissions/package.json packages/submissions/
COPY packages/storage/package.json packages/storage/
COPY packages/servers/package.json packages/servers/
COPY packages/cli/package.json packages/cli/
COPY services/ingest-api/package.json services/ingest-api/
COPY services/writer/package.json services/writer/
COPY packages/console/package.json packages/console/
COPY services/query-api/package.json services/query-api/
COPY services/trench-api/package.json services/trench-api/
ARG SERVICE
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc \
    --mount=type=secret,id=ca,target=/run/secrets/ca.pem \
    test -n "$SERVICE" || { echo "SERVICE must be ingest-api, writer, query-api or trench-api" >&2; exit 1; }; \
    if [ -s /run/secrets/ca.pem ]; then export NODE_EXTRA_CA_CERTS=/run/secrets/ca.pem; fi; \
    npm install --global pnpm@12.21.0 && \
    pnpm install --frozen-lockfile --prod --no-optional --filter "@sluice/$SERVICE..." --filter "@sluice/cli..." && \
    pnpm sbom --lockfile-only --prod --no-optional --filter "@sluice/$SERVICE..." --filter "@sluice/cli..." \
      --sbom-format cyclonedx --sbom-type application --out sbom.cdx.json
# What only the installation needs; what only debuggers, compilers and people read (Node.js runs no TypeScript of
# packages); tests of packages; and the builds of the documentation page that no service serves.
RUN rm -rf pnpm-lock.yaml pnpm-workspace.yaml patches node_modules/.pnpm/lock.yaml && \
    find node_modules -type f -regex '.*\.\(map\|ts\|mts\|cts\|md\|markdown\)' ! -iname 'licen[cs]e*' -delete && \
    find node_modules -depth -type d \( -name test -o -name tests -o -name docs -o -name benchmark -o -name benchmarks \) \
      -exec rm -rf {} + && \
    find node_modules -type f -path '*/swagger-ui-dist/*.js' ! -name swagger-ui-bundle.js ! -name absolute-path.js \
      ! -name index.js -delete && \
    find node_modules -type d -empty -delete

# The console is the same for every service, so that it is built once.
FROM --platform=$BUILDPLATFORM $NODE_IMAGE AS console
WORKDIR /sluice
COPY package.json pnpm-workspace.yaml pnpm-lock.yaml ./
COPY patches patches
COPY packages/console/package.json packages/console/
COPY packages/shared/package.json packages/shared/
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc \
    --mount=type=secret,id=ca,target=/run/secrets/ca.pem \
    if [ -s /run/secrets/ca.pem ]; then export NODE_EXTRA_CA_CERTS=/run/secrets/ca.pem; fi; \
    npm install --global pnpm@12.21.0 && \
    pnpm install --frozen-lockfile --filter @sluice/console
COPY packages/shared/src/rows/event-identifiers.ts packages/shared/src/rows/
COPY packages/console/scripts packages/console/scripts
COPY packages/console/src packages/console/src
RUN node packages/console/scripts/build.ts

# Nothing is installed in a running container: neither npm and yarn nor apt and dpkg are in the image. dpkg's list of what
# is left stays, for programs that look for known vulnerabilities.
FROM $NODE_IMAGE AS system
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
      /usr/local/bin/yarn* /opt/yarn* /usr/local/include /usr/local/share /usr/local/*.md && \
    force="--force-depends --force-remove-essential --force-remove-protected" && \
    dpkg --purge $force apt libapt-pkg7.0 sqv perl-base debconf debian-archive-keyring && \
    dpkg --purge $force dpkg && \
    rm -rf /var/lib/apt /var/cache/* /var/log/*

# In one layer, so that nothing removed is in a layer below.
FROM scratch
COPY --from=system / /
WORKDIR /sluice
ARG SERVICE
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ENV NODE_ENV=production SERVICE=$SERVICE HOST=0.0.0.0 PORT=8080
COPY --from=dependencies /sluice ./
COPY LICENSE ./
COPY packages/shared/src packages/shared/src
COPY packages/submissions/src packages/submissions/src
COPY packages/storage/src packages/storage/src
COPY packages/servers/src packages/servers/src
COPY packages/cli/src packages/cli/src
COPY deploy/clickhouse/sql deploy/clickhouse/sql
COPY services/$SERVICE/src services/$SERVICE/src
COPY --from=console /sluice/packages/console/dist packages/console/dist
# Every image can run the commands for operators.
# Import and export need packages that are optional dependencies, and no image has them.
RUN ln -s /sluice/packages/cli/src/main.ts /usr/local/bin/sluice
# A volume mounted here belongs to the user that the service runs as.
RUN mkdir /etc/sluice .cache && chown node:node /etc/sluice .cache
USER node
# What Node.js compiles, and strips of types, is in the image: a start takes two thirds of the CPU time, also where no file
# can be written. Each of these ends at once, for want of settings. Another user, or another kind of processor, goes without.
# Then it is root's, as the sources are: what runs cannot be changed by the user that runs it.
ENV NODE_COMPILE_CACHE=/sluice/.cache/compile
RUN for program in "services/$SERVICE/src/main.ts" packages/shared/src/http/check-health.ts "packages/cli/src/main.ts keys --help"; do \
      node $program >/dev/null 2>&1 || true; \
    done
USER root
RUN chown -R root:root .cache && chmod -R a+rX .cache
USER node
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD ["node", "packages/shared/src/http/check-health.ts"]
# exec: the service itself gets the signals.
CMD ["sh", "-c", "exec node services/$SERVICE/src/main.ts"]
