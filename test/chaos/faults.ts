import { setTimeout as sleep } from "node:timers/promises";
import type { ClusterClient } from "../../src/kube/client.ts";
import { nodes, pods } from "../../src/kube/resources.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { podsOf } from "../support/harness/pods-of.ts";
import type { Legation } from "../support/legation/start.ts";
import { type Happening, pick } from "./plan.ts";

/** Where everything happens. */
export interface Scene {
  readonly host: Cluster;
  readonly members: { readonly west: Cluster; readonly east: Cluster };
  readonly clients: { readonly host: ClusterClient; readonly west: ClusterClient; readonly east: ClusterClient };
  readonly legation: Legation;
  readonly namespace: string;
}

/** Breaks something and mends it when its time has come. */
export async function inject(scene: Scene, happening: Extract<Happening, { readonly type: "fault" }>): Promise<void> {
  const { fault, member: name, lastsMs, dice } = happening;
  const { controller } = scene.legation;
  const member = scene.members[name];
  const during = async (breakIt: () => void | Promise<void>, mendIt: () => void | Promise<void>): Promise<void> => {
    await breakIt();
    await sleep(lastsMs);
    await mendIt();
  };
  switch (fault) {
    case "controller killed":
      return during(
        () => controller.stop("SIGKILL"),
        () => controller.start(),
      );
    case "controller paused":
      return during(
        () => controller.freeze(),
        () => controller.thaw(),
      );
    case "host API server restarted":
      return scene.host.apiServer.restart();
    case "member API server stopped":
      return during(
        () => member.apiServer.stop("SIGKILL"),
        () => member.apiServer.start(),
      );
    case "member API server frozen":
      return during(
        () => member.apiServer.freeze(),
        () => member.apiServer.thaw(),
      );
    case "member etcd restarted":
      return member.etcd.restart();
    case "member cut off":
      return during(
        () => member.proxy.cut(),
        () => member.proxy.heal(),
      );
    case "member swallows everything":
      return during(
        () => member.proxy.blackhole(),
        () => member.proxy.heal(),
      );
    case "member's answers lost":
      return during(
        () => member.proxy.deaf("answers"),
        () => member.proxy.heal(),
      );
    case "requests to member lost":
      return during(
        () => member.proxy.deaf("requests"),
        () => member.proxy.heal(),
      );
    case "member slow":
      return during(
        () => member.proxy.slow(300),
        () => member.proxy.heal(),
      );
    case "member's connections reset":
      return member.proxy.reset();
    case "virtual node cordoned":
      return during(
        () => cordon(scene, name, true),
        () => cordon(scene, name, false),
      );
    case "delegate deleted in its member": {
      const found = await podsOf(scene.clients[name], scene.namespace);
      if (found.length === 0) return;
      const { metadata } = pick(found, dice);
      await scene.clients[name].delete(pods, { namespace: scene.namespace, name: metadata.name });
    }
  }
}

/** Opens the member's virtual node for new pods, or closes it. */
export async function cordon({ clients }: Scene, member: string, unschedulable: boolean): Promise<void> {
  await clients.host.patch(nodes, { name: `legation-${member}` }, { type: "merge", body: { spec: { unschedulable } } });
}
