import { PROXY_UID_ANNOTATION } from "../api/keys.ts";
import type { Container, PodSpec, Volume } from "../api/kubernetes.ts";

type FieldRef = { readonly fieldPath: string };
type Item = NonNullable<NonNullable<Volume["downwardAPI"]>["items"]>[number];

const UID = "metadata.uid";
const ASKS = `"fieldPath":"${UID}"`;
const PROXY_UID = `metadata.annotations['${PROXY_UID_ANNOTATION}']`;

/** The host knows the pod by the proxy's uid. */
export function withProxyUid(spec: PodSpec): PodSpec {
  if (!JSON.stringify([spec.containers, spec.initContainers, spec.volumes]).includes(ASKS)) return spec;
  const { containers, initContainers, volumes } = spec;
  return {
    ...spec,
    containers: containers.map(inEnvironment),
    ...(initContainers === undefined ? {} : { initContainers: initContainers.map(inEnvironment) }),
    ...(volumes === undefined ? {} : { volumes: volumes.map(inVolume) }),
  };
}

function inEnvironment(container: Container): Container {
  if (container.env === undefined) return container;
  const env = container.env.map((variable) => {
    const { valueFrom } = variable;
    if (valueFrom?.fieldRef === undefined) return variable;
    return { ...variable, valueFrom: { ...valueFrom, fieldRef: ofProxy(valueFrom.fieldRef) } };
  });
  return { ...container, env };
}

function inVolume(volume: Volume): Volume {
  const { downwardAPI, projected } = volume;
  return {
    ...volume,
    ...(downwardAPI?.items === undefined
      ? {}
      : { downwardAPI: { ...downwardAPI, items: downwardAPI.items.map(inItem) } }),
    // An empty projection has `null` sources.
    ...(projected?.sources ? { projected: { ...projected, sources: projected.sources.map(inSource) } } : {}),
  };
}

function inSource<T extends { readonly downwardAPI?: { items?: Item[] } }>(source: T): T {
  const { downwardAPI } = source;
  if (downwardAPI?.items === undefined) return source;
  return { ...source, downwardAPI: { ...downwardAPI, items: downwardAPI.items.map(inItem) } };
}

function inItem(item: Item): Item {
  return item.fieldRef === undefined ? item : { ...item, fieldRef: ofProxy(item.fieldRef) };
}

function ofProxy<T extends FieldRef>(reference: T): T {
  return reference.fieldPath === UID ? { ...reference, fieldPath: PROXY_UID } : reference;
}
