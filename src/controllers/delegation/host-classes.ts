import { type KubeObject, objectKey, type PriorityClass, type RuntimeClass } from "../../api/kubernetes.ts";
import { unlessAborted } from "../../kube/abort.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { priorityClasses, type Resource, runtimeClasses } from "../../kube/resources.ts";
import type { HostAdmission } from "../../pods/host-admission.ts";
import type { ControllerOptions } from "../../runtime/controller.ts";
import { Reflector } from "../../runtime/reflector.ts";

export interface HostClassesOptions extends ControllerOptions {
  readonly host: ClusterClient;
}

/** The host's RuntimeClasses and PriorityClasses, by which its admission completes pods. */
export class HostClasses {
  readonly admission: Pick<HostAdmission, "runtimeClass" | "priorityClass"> = {
    runtimeClass: (name) => this.#runtimeClasses.store.get(objectKey({ name })),
    priorityClass: (name) => this.#priorityClasses.store.get(objectKey({ name })),
  };
  readonly #runtimeClasses: Reflector<RuntimeClass>;
  readonly #priorityClasses: Reflector<PriorityClass>;
  readonly #tried: readonly Promise<void>[];

  constructor(options: HostClassesOptions) {
    const tried: Promise<void>[] = [];
    const reflect = <T extends KubeObject>(resource: Resource<T>): Reflector<T> => {
      const { host: client, clock, log } = options;
      const failed = Promise.withResolvers<void>();
      const onState = (state: string): void => {
        if (state === "backing-off") failed.resolve();
      };
      const reflector = new Reflector<T>({ client, resource, clock, log, onState });
      tried.push(Promise.race([reflector.whenSynced(), failed.promise]));
      return reflector;
    };
    this.#runtimeClasses = reflect(runtimeClasses);
    this.#priorityClasses = reflect(priorityClasses);
    this.#tried = tried;
  }

  /** Reads both before pods. An older ClusterRole lacks these rights: pods then go as the host's admission left them. */
  async start(signal: AbortSignal): Promise<void> {
    this.#runtimeClasses.start();
    this.#priorityClasses.start();
    await unlessAborted(Promise.all(this.#tried), signal);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#runtimeClasses.stop(), this.#priorityClasses.stop()]);
  }
}
