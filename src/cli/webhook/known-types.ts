import type { DelegatedType } from "../../api/delegated-type.ts";
import { delegatedTypes } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { realClock } from "../../runtime/clock.ts";
import { Reflector } from "../../runtime/reflector.ts";
import type { Logger } from "../../telemetry/logger.ts";

/** The host's DelegatedTypes, watched so that no review needs a request. */
export class KnownTypes {
  readonly #types: Reflector<DelegatedType>;

  constructor({ client, log }: { readonly client: ClusterClient; readonly log: Logger }) {
    this.#types = new Reflector<DelegatedType>({
      client,
      resource: delegatedTypes,
      clock: realClock,
      log,
      indexes: { kind: ({ spec }) => [`${spec.group ?? ""}/${spec.kind}`] },
      onEvent: () => {},
    });
  }

  start(): void {
    this.#types.start();
  }

  stop(): Promise<void> {
    return this.#types.stop();
  }

  find(group: string, kind: string): DelegatedType | "none" | "unknown" {
    if (!this.#types.store.synced) return "unknown";
    return this.#types.store.byIndex("kind", `${group}/${kind}`)[0] ?? "none";
  }
}
