import { z } from "zod";
import type { ClusterClient } from "./client.ts";
import { isKubeError, KubeError } from "./errors.ts";
import type { KubeObject } from "./objects.ts";
import type { OptionalResource, Resource } from "./resources.ts";

const groupVersion = z.object({ version: z.string() });
const groupList = z.object({
  groups: z.array(z.object({ name: z.string(), versions: z.array(groupVersion), preferredVersion: groupVersion })),
});
const resourceList = z.object({ resources: z.array(z.object({ name: z.string() })) });

/** Reports whether the API server serves the resource in any version. Rejects with KubeError. */
export async function isServed(
  client: ClusterClient,
  resource: Pick<Resource<KubeObject>, "group" | "plural">,
  signal: AbortSignal,
): Promise<boolean> {
  return (await findVersion(client, resource, signal)) !== undefined;
}

/**
 * Returns the version that client-go's RESTMapper would choose: the group's preferred version first, then the others in the API
 * server's order, of those understood. Undefined if none is served. Rejects with KubeError.
 */
async function findVersion(
  client: ClusterClient,
  resource: Pick<Resource<KubeObject>, "group" | "plural">,
  signal: AbortSignal,
  understood?: readonly string[],
): Promise<string | undefined> {
  // The list of groups proves absence; a 404 for the group's own path may come from a proxy in between.
  const { groups } = await read(client, "/apis", groupList, signal);
  const group = groups.find(({ name }) => name === resource.group);
  if (group === undefined) return undefined;
  const served = [group.preferredVersion, ...group.versions].map(({ version }) => version);
  for (const version of new Set(served)) {
    if (understood?.includes(version) === false) continue;
    const { resources } = await read(client, `/apis/${resource.group}/${version}`, resourceList, signal);
    if (resources.some(({ name }) => name === resource.plural)) return version;
  }
  return undefined;
}

async function read<Schema extends z.ZodType>(
  client: ClusterClient,
  path: string,
  schema: Schema,
  signal: AbortSignal,
): Promise<z.infer<Schema>> {
  const parsed = schema.safeParse(await client.raw({ method: "GET", path, signal }));
  if (parsed.success) return parsed.data;
  const fields = { code: "BadAnswer", cluster: client.cluster, verb: "get", resource: path } as const;
  throw new KubeError("the answer is no discovery document", fields);
}

export function resourceOf<T extends KubeObject>(
  { versions, ...resource }: OptionalResource<T>,
  { apiVersion = "" }: KubeObject,
): Resource<T> {
  const [, version = versions[0]] = apiVersion.split("/");
  return { ...resource, version };
}

/** The version of a resource that one cluster serves, looked up once, and again after the API server no longer knows it. */
export class ServedResource<T extends KubeObject> {
  readonly #client: ClusterClient;
  readonly #resource: Resource<T> | OptionalResource<T>;
  #found: Resource<T> | undefined;

  /** A resource with a fixed version is never looked up. */
  constructor(client: ClusterClient, resource: Resource<T> | OptionalResource<T>) {
    this.#client = client;
    this.#resource = resource;
  }

  /** Returns the resource in its served version; undefined if none is served. Rejects with KubeError. */
  async find(signal: AbortSignal): Promise<Resource<T> | undefined> {
    if ("version" in this.#resource) return this.#resource;
    if (this.#found !== undefined) return this.#found;
    const { versions, ...resource } = this.#resource;
    const version = await findVersion(this.#client, resource, signal, versions);
    this.#found = version === undefined ? undefined : { ...resource, version };
    return this.#found;
  }

  /** Looks the version up again the next time, if this error may mean that it is no longer served. */
  doubt(error: unknown): void {
    if (isKubeError(error, "NotFound")) this.#found = undefined;
  }

  /** Sends a request in the served version, once more if that has changed meanwhile; undefined if no version is served. */
  async use<Answer>(
    request: (resource: Resource<T>) => Promise<Answer>,
    signal: AbortSignal,
  ): Promise<Answer | undefined> {
    const before = await this.find(signal);
    if (before === undefined) return undefined;
    try {
      return await request(before);
    } catch (error) {
      this.doubt(error);
      const now = await this.find(signal);
      if (now?.version === before.version) throw error;
      return now === undefined ? undefined : request(now);
    }
  }
}
