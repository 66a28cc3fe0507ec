import type { ResourceFlavor } from "../../api/kueue.ts";
import { resourceFlavors } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { ControllerOptions } from "../../runtime/controller.ts";
import { Reflector } from "../../runtime/reflector.ts";
import type { Emitter } from "../events.ts";

export interface FlavorsOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly events: Emitter;
}

/** Makes the reflector of Kueue's ResourceFlavors, which the first controller starts that needs them. */
export function reflectFlavors({ host: client, events, clock, log }: FlavorsOptions): Reflector<ResourceFlavor> {
  return new Reflector<ResourceFlavor>({
    ...{ client, clock, log },
    resource: resourceFlavors,
    onEvent: () => events.emit("flavors"),
    onState: () => events.emit("flavors"),
  });
}
