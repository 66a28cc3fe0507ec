import type { ApiMode } from "../api/annotations.ts";
import { defined } from "../api/defined.ts";
import type { HomeAddress } from "../api/home-address.ts";
import type { Container, Pod, PodSpec, Volume } from "../api/kubernetes.ts";

export type HomeApi =
  | { readonly state: "known"; readonly address: HomeAddress }
  /** The operator has not set an address; the message says what to set. */
  | { readonly state: "unknown"; readonly message: string }
  | { readonly state: "pending"; readonly message: string };

/** The API server of a delegate's in-cluster configuration. */
export type ApiAccess =
  | { readonly mode: "host"; readonly address: HomeAddress }
  | { readonly mode: "member" }
  | { readonly mode: "none" };

export type ApiChoice =
  | { readonly access: ApiAccess; readonly refusal?: never }
  | { readonly access?: never; readonly refusal: string };

export interface WantedToken {
  readonly key: string;
  /** Undefined means the API server's own audience. */
  readonly audience?: string;
  readonly expirationSeconds: number;
}

export const CA_KEY = "ca.crt";
// Present in every namespace with that cluster's authority (kube-controller-manager's root-ca-cert-publisher).
const ROOT_CA_CONFIG_MAP = "kube-root-ca.crt";
// The API server's default (SetDefaults_ServiceAccountTokenProjection).
const DEFAULT_EXPIRATION_SECONDS = 3600;
// The standard mount path. Some authors mount a token Secret of their own there.
const TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount";
const SERVICE_NAMES: readonly string[] = [
  "kubernetes.default",
  "kubernetes.default.svc",
  "kubernetes.default.svc.cluster.local",
];

/** The name is known before the delegate has a uid, so its spec can name it. */
export function apiSecretName(proxyUid: string): string {
  return `legation-api-${proxyUid}`;
}

/** Returns the tokens that a pod mounts, in the order of its volumes. */
export function wantedTokens({ spec }: Pod): WantedToken[] {
  const tokens = (spec?.volumes ?? []).flatMap(({ projected }) =>
    (projected?.sources ?? []).flatMap(({ serviceAccountToken }) => serviceAccountToken ?? []),
  );
  return tokens.map(({ audience = "", expirationSeconds = DEFAULT_EXPIRATION_SECONDS }, index) => ({
    key: tokenKey(index),
    ...(audience === "" ? {} : { audience }),
    expirationSeconds,
  }));
}

/** Admission adds a token, or the author mounts one from a Secret. */
export function usesApi(pod: Pod): boolean {
  const { containers = [], initContainers = [] } = pod.spec ?? {};
  // `legation plan` reads manifests that may lack required fields.
  const isToken = ({ mountPath = "" }: { readonly mountPath?: string }): boolean =>
    mountPath.replace(/\/+$/, "") === TOKEN_PATH;
  return (
    wantedTokens(pod).length > 0 || [...containers, ...initContainers].some((one) => one.volumeMounts?.some(isToken))
  );
}

/** Reports whether the access depends on how the member reaches the host's API server. */
export function asksHomeApi(proxy: Pod, mode: ApiMode | undefined): boolean {
  return mode === "host" || (mode === undefined && usesApi(proxy));
}

/** Returns the access that the proxy's delegate gets. */
export function apiChoice(proxy: Pod, mode: ApiMode | undefined, home: HomeApi): ApiChoice {
  if (mode === "member" || mode === "none") return { access: { mode } };
  const isKnown = home.state === "known";
  // An explicit `host` may use a token from elsewhere.
  if (!usesApi(proxy) && !(mode === "host" && isKnown)) return { access: { mode: "none" } };
  if (isKnown) return { access: { mode: "host", address: home.address } };
  if (home.state === "pending" || mode === "host") return { refusal: home.message };
  return { access: { mode: "none" } };
}

export function mountsApiSecret({ spec }: Pod, proxyUid: string): boolean {
  const wanted = apiSecretName(proxyUid);
  return (
    spec?.volumes?.some(
      ({ projected, secret }) =>
        secret?.secretName === wanted || projected?.sources?.some((source) => source.secret?.name === wanted),
    ) ?? false
  );
}

export function withApiAccess(spec: PodSpec, proxyUid: string, access: ApiAccess): PodSpec {
  switch (access.mode) {
    case "member":
      return withVolumes(spec, (volume) => (isApiAccessVolume(volume) ? undefined : volume));
    case "none":
      return { ...withVolumes(spec, withoutTokens), automountServiceAccountToken: false };
    case "host":
      return withHomeApi(spec, proxyUid, access.address);
  }
}

function withHomeApi(spec: PodSpec, proxyUid: string, address: HomeAddress): PodSpec {
  const name = apiSecretName(proxyUid);
  let tokens = 0;
  const nextKey = (): string => tokenKey(tokens++);
  const { containers, initContainers, ...rest } = withVolumes(spec, (volume) =>
    withHostCredentials(volume, name, nextKey, (defaultMode) => tokenMode(spec, defaultMode)),
  );
  const env = (container: Container): Container => withEnvironment(container, address, name);
  const hostAliases = withServiceName(spec.hostAliases, address);
  return {
    ...rest,
    containers: containers.map(env),
    ...(initContainers === undefined ? {} : { initContainers: initContainers.map(env) }),
    ...(hostAliases === undefined ? {} : { hostAliases }),
    // The member's admission would mount a token of its own.
    automountServiceAccountToken: false,
  };
}

/** Clients such as Spark's driver dial the API server by its Service's name at port 443. */
function withServiceName(
  aliases: PodSpec["hostAliases"],
  { host, port, ip = host }: HomeAddress,
): PodSpec["hostAliases"] {
  const isAddress = ip.includes(":") || /^[0-9.]+$/.test(ip);
  const own = aliases?.some(({ hostnames }) => hostnames?.some((name) => SERVICE_NAMES.includes(name))) ?? false;
  if (!isAddress || port !== "443" || own) return aliases;
  return [...(aliases ?? []), { ip, hostnames: [...SERVICE_NAMES] }];
}

/** Returns undefined where a container names none, or they differ (FsUserFrom in pkg/volume/util). */
function soleUser({ securityContext, containers, initContainers = [] }: PodSpec): number | undefined {
  const all = [...containers, ...initContainers];
  const [user, ...others] = new Set(all.map((one) => one.securityContext?.runAsUser ?? securityContext?.runAsUser));
  return others.length === 0 ? user : undefined;
}

const READABLE = 0o644;
const FOR_ALL = 0o004;
const READ_BY_ALL = 0o444;
const OWNER_ONLY = 0o600;

/** A kubelet's token belongs to the containers' user; a Secret's file is root's, so others need it readable by all. */
function tokenMode(spec: PodSpec, defaultMode: number): number | undefined {
  const user = soleUser(spec);
  if (spec.securityContext?.fsGroup !== undefined || user === 0) return OWNER_ONLY;
  return user === undefined || (defaultMode & FOR_ALL) !== 0 ? undefined : defaultMode | READ_BY_ALL;
}

function withHostCredentials(
  volume: Volume,
  name: string,
  nextKey: () => string,
  modeOf: (defaultMode: number) => number | undefined,
): Volume {
  const { projected, configMap, ...rest } = volume;
  if (configMap?.name === ROOT_CA_CONFIG_MAP) {
    const { items, defaultMode, optional } = configMap;
    return {
      ...rest,
      secret: {
        secretName: name,
        // The Secret has more keys than the ConfigMap.
        items: items ?? [{ key: CA_KEY, path: CA_KEY }],
        ...defined({ defaultMode, optional }),
      },
    };
  }
  // An empty projection has `null` sources.
  if (!projected?.sources) return volume;
  const own = modeOf(projected.defaultMode ?? READABLE);
  const mode = own === undefined ? {} : { mode: own };
  const sources = projected.sources.map((source) => {
    const { serviceAccountToken, configMap: map } = source;
    if (serviceAccountToken !== undefined) {
      return { secret: { name, items: [{ key: nextKey(), path: serviceAccountToken.path, ...mode }] } };
    }
    if (map?.name !== ROOT_CA_CONFIG_MAP) return source;
    return { secret: { ...map, name, items: map.items ?? [{ key: CA_KEY, path: CA_KEY }] } };
  });
  return { ...rest, projected: { ...projected, sources } };
}

/** Returns the container with the host's address and authority, unless the author set them. */
function withEnvironment(container: Container, { host, port }: HomeAddress, secret: string): Container {
  const written = new Set(container.env?.map(({ name }) => name));
  const variables = [
    { name: "KUBERNETES_SERVICE_HOST", value: host },
    { name: "KUBERNETES_SERVICE_PORT", value: port },
    { name: "KUBERNETES_SERVICE_PORT_HTTPS", value: port },
  ].filter(({ name }) => !written.has(name));
  const own = (container.env ?? []).map((variable) => withAuthority(variable, secret));
  // First, since a variable can refer to earlier ones.
  return { ...container, env: [...variables, ...own] };
}

type Variable = NonNullable<Container["env"]>[number];

function withAuthority(variable: Variable, secret: string): Variable {
  const reference = variable.valueFrom?.configMapKeyRef;
  if (reference?.name !== ROOT_CA_CONFIG_MAP) return variable;
  return { ...variable, valueFrom: { secretKeyRef: { ...reference, name: secret } } };
}

/** Returns undefined if nothing else is left. */
function withoutTokens(volume: Volume): Volume | undefined {
  const { projected } = volume;
  if (isApiAccessVolume(volume)) return undefined;
  if (!projected?.sources?.some(({ serviceAccountToken }) => serviceAccountToken !== undefined)) return volume;
  const sources = projected.sources.filter(({ serviceAccountToken }) => serviceAccountToken === undefined);
  return sources.length === 0 ? undefined : { ...volume, projected: { ...projected, sources } };
}

function withVolumes(spec: PodSpec, change: (volume: Volume) => Volume | undefined): PodSpec {
  if (spec.volumes === undefined) return spec;
  const gone = new Set<string>();
  const volumes = spec.volumes.flatMap((volume) => {
    const changed = change(volume);
    if (changed === undefined) gone.add(volume.name);
    return changed ?? [];
  });
  if (gone.size === 0) return { ...spec, volumes };
  const { initContainers } = spec;
  const withoutGone = (container: Container): Container => withoutMounts(container, gone);
  return {
    ...spec,
    volumes,
    containers: spec.containers.map(withoutGone),
    ...(initContainers === undefined ? {} : { initContainers: initContainers.map(withoutGone) }),
  };
}

/** Reports whether the ServiceAccount admission plugin added the volume; the member's plugin adds its own. */
function isApiAccessVolume({ name, projected }: Volume): boolean {
  return (
    name.startsWith("kube-api-access-") &&
    (projected?.sources?.some(({ serviceAccountToken }) => serviceAccountToken !== undefined) ?? false)
  );
}

function withoutMounts(container: Container, volumes: ReadonlySet<string>): Container {
  if (container.volumeMounts === undefined) return container;
  const volumeMounts = container.volumeMounts.filter(({ name }) => !volumes.has(name));
  const { volumeMounts: _, ...rest } = container;
  return volumeMounts.length === 0 ? rest : { ...rest, volumeMounts };
}

function tokenKey(index: number): string {
  return `token-${index}`;
}
