import type { Container, ContainerStatus } from "../api/kubernetes.ts";

type Described = Pick<Container, "name" | "volumeMounts" | "resources">;

/**
 * A delegate's container statuses as the proxy shows them: those of containers that the proxy's spec has, with the mounts
 * and devices that it has. A member may inject containers, volumes and devices of its own, and overrides may. Undefined when
 * none is left.
 */
export function shownStatuses(
  statuses: readonly ContainerStatus[] | undefined,
  containers: readonly Described[] | undefined,
): ContainerStatus[] | undefined {
  const own = new Map(containers?.map((container) => [container.name, container]));
  const shown = (statuses ?? []).flatMap((status) => {
    const container = own.get(status.name);
    return container === undefined ? [] : [withOwnDevices(withOwnMounts(status, container), container)];
  });
  return shown.length === 0 ? undefined : shown;
}

/** The host's API server refuses a status that tells of devices which the proxy has not asked for (validation.go of core). */
function withOwnDevices(status: ContainerStatus, { resources = {} }: Described): ContainerStatus {
  const { allocatedResourcesStatus: told, ...rest } = status;
  if (told === undefined) return status;
  const claims = (resources.claims ?? []).map(({ name, request = "" }) => `claim:${name}${request && `/${request}`}`);
  const own = new Set([...Object.keys(resources.requests ?? {}), ...claims]);
  const shown = told.filter(({ name }) => own.has(name));
  return shown.length === 0 ? rest : { ...rest, allocatedResourcesStatus: shown };
}

/** Each cluster's admission gives its token volume a name of its own, at the same path. */
function withOwnMounts(status: ContainerStatus, { volumeMounts = [] }: Described): ContainerStatus {
  const { volumeMounts: told, ...rest } = status;
  if (told === undefined) return status;
  const names = new Map(volumeMounts.map(({ mountPath, name }) => [mountPath, name]));
  const shown = told.flatMap((mount) => {
    const name = names.get(mount.mountPath);
    return name === undefined ? [] : [{ ...mount, name }];
  });
  return shown.length === 0 ? rest : { ...rest, volumeMounts: shown };
}
