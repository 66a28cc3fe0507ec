import { auditEvents } from "../clusters/audit.ts";
import { memberCluster } from "../harness/clusters.ts";
import type { GatedLegation } from "../write-gate/gated-legation.ts";

/** A write in the life of an object at which the controller is killed. */
export interface KillPoint {
  readonly when: "before" | "after";
  readonly where: "host" | "member";
  readonly method: string;
  /** End of the path, after the namespace. */
  readonly path: string;
  readonly body: RegExp;
}

/** Kills the controller at one write in the namespace, and starts it again. Resolves when it runs again. */
export function killAt({ legation, trap }: GatedLegation, namespace: string, point: KillPoint): Promise<void> {
  const { when, where, method, path, body } = point;
  const killed = Promise.withResolvers<void>();
  trap(where, {
    when,
    namespace,
    catches: (write) => write.method === method && write.path.endsWith(`/${namespace}${path}`) && body.test(write.body),
    onCaught: async () => {
      await legation.controller.stop("SIGKILL");
      killed.resolve();
    },
  });
  return killed.promise.then(() => legation.controller.start());
}

/** Counts the objects of a resource that were ever created in the members' namespace. */
export async function createdInMembers(resource: string, namespace: string): Promise<number> {
  const all = await Promise.all(
    (["west", "east"] as const).map((name) =>
      auditEvents(
        memberCluster(name),
        ({ verb, objectRef, responseStatus }) =>
          verb === "create" &&
          objectRef?.resource === resource &&
          objectRef.namespace === namespace &&
          responseStatus?.code === 201,
        [namespace],
      ),
    ),
  );
  return all.flat().length;
}
