# Both stages may come from any registry: docker build --build-arg NODE_IMAGE=registry.example/node:24-slim .
ARG NODE_IMAGE=node:24-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY src src
COPY webhook webhook
COPY scripts/build-page.ts scripts/
RUN npm run build && npm prune --omit=dev && chmod +x dist/src/cli/main.js

FROM ${NODE_IMAGE}
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json LICENSE ./
COPY manifests manifests
# By number, so that the kubelet can verify runAsNonRoot.
USER 65532:65532
# Node stops at the first signal as PID 1 only because the CLI handles SIGTERM itself.
# By its first line, which has options for Node.
ENTRYPOINT ["/app/dist/src/cli/main.js"]
