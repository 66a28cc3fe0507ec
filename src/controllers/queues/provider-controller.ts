import { objectKey } from "../../api/kubernetes.ts";
import type { CapacityProvider } from "../../api/kueue.ts";
import { capacityProviders } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { resourceOf } from "../../kube/optional-resource.ts";
import { type ActionContext, Controller, type ControllerOptions, type Expectation } from "../../runtime/controller.ts";
import { sendGuarded } from "../../runtime/guarded-write.ts";
import { Reflector } from "../../runtime/reflector.ts";
import { WriteGuard } from "../../runtime/write-guard.ts";
import type { FlavorCapacities } from "./flavor-capacities.ts";
import {
  decide,
  MEMBERS_PROVIDER,
  type ObservedProvider,
  type ProviderAction,
  statusContent,
} from "./provider-decide.ts";

export interface ProviderOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly capacities: Pick<FlavorCapacities, "changed" | "current" | "onChange" | "start">;
}

const WRITE = "status";

/** Publishes members' capacity in Kueue's CapacityProviders that name Legation, while the host serves them. The key is the provider's name. */
export class ProviderController {
  readonly #options: ProviderOptions;
  readonly #providers: Reflector<CapacityProvider>;
  readonly #loop: Controller<string, ObservedProvider, ProviderAction>;
  readonly #guard: WriteGuard;

  constructor(options: ProviderOptions) {
    this.#options = options;
    const { host: client, capacities, clock, log } = options;
    this.#guard = new WriteGuard({ clock });
    this.#providers = new Reflector<CapacityProvider>({
      client,
      resource: capacityProviders,
      clock,
      log,
      onEvent: ({ object }) => {
        this.#loop.enqueue(object.metadata.name);
        // The flavors in use may have changed with it.
        capacities.changed();
      },
      onState: (state) => {
        if (state === "watching") capacities.start();
      },
    });
    this.#loop = new Controller<string, ObservedProvider, ProviderAction>(
      {
        name: "capacity-providers",
        observe: (name) => this.#observe(name),
        decide,
        execute: (action, context) => this.#execute(action, context),
      },
      options,
    );
    capacities.onChange(
      () => {
        for (const { metadata } of this.#providers.store.list()) this.#loop.enqueue(metadata.name);
      },
      () =>
        this.#providers.store.list().flatMap(({ spec }) => spec?.orchestratedFlavors?.map(({ name }) => name) ?? []),
    );
  }

  start(): void {
    this.#providers.start();
  }

  async stop(): Promise<void> {
    await this.#providers.stop();
    await this.#loop.stop();
  }

  #observe(name: string): ObservedProvider | undefined {
    const provider = this.#providers.store.get(objectKey({ name }));
    if (provider?.spec?.controllerName !== MEMBERS_PROVIDER) {
      this.#guard.forget(name);
      return undefined;
    }
    return {
      provider,
      capacities: this.#options.capacities.current(),
      heldUntil: (content) => this.#guard.heldUntil(name, WRITE, content),
    };
  }

  async #execute(
    { status }: ProviderAction,
    { key, signal, log }: ActionContext<string>,
  ): Promise<Expectation<ObservedProvider> | undefined> {
    const { host } = this.#options;
    const provider = this.#providers.store.get(objectKey({ name: key }));
    if (provider === undefined) return undefined;
    const { uid, resourceVersion } = provider.metadata;
    const body = { metadata: { uid, resourceVersion }, status };
    const content = statusContent(status);
    const resource = resourceOf(capacityProviders, provider);
    return sendGuarded<string, ObservedProvider, unknown>({
      guard: this.#guard,
      object: key,
      write: WRITE,
      content: () => content,
      send: () => {
        const options = { subresource: "status", metadataOnly: true, signal } as const;
        return host.patch(resource, { name: key }, { type: "merge", body }, options);
      },
      onWritten: () => {
        this.#guard.written(key, WRITE, { [WRITE]: content }, { content });
        return (after) => after.provider.metadata.resourceVersion !== resourceVersion;
      },
      onRefused: (reason) => log.warn({ reason }, "capacity cannot be published"),
    });
  }
}
