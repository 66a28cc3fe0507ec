import { objectKey, type ServiceExport } from "../../../api/kubernetes.ts";
import type { Member } from "../../../clusters/member.ts";
import type { ServiceObject } from "../../../copies/services.ts";
import { serviceExports } from "../../../kube/resources.ts";
import type { Timer } from "../../../runtime/clock.ts";
import { Controller } from "../../../runtime/controller.ts";
import { Reflector } from "../../../runtime/reflector.ts";
import type { Copier } from "../../copying/copier.ts";
import { type CopyKey, copyKey, copyRef } from "../../copying/model.ts";
import type { PodCopierOptions } from "../../copying/pod-copier.ts";
import { inMember } from "../../copying/writer.ts";
import { decideExport, type ExportAction, type ExportSource, type ObservedCopy } from "./decide.ts";
import { ExportStatus } from "./status.ts";
import { Exports } from "./writer.ts";

export interface ExportControllerOptions extends PodCopierOptions {
  readonly copier: Pick<Copier<ServiceObject>, "standing"> & {
    readonly copies: Pick<Copier<ServiceObject>["copies"], "of" | "in">;
    readonly sources: Pick<Copier<ServiceObject>["sources"], "of">;
  };
  /** Reports whether Legation is the implementation there, which reads the host's exports. */
  readonly exportsItself: (member: string) => boolean;
  readonly counts: (member: string, namespace: string, name: string) => boolean;
}

const SERVICE = "Service";
// Longer than a CronJob takes to start its next pod.
const UNUSED_EXPORT_KEPT_MS = 5 * 60_000;

/** Makes ServiceExports beside copies. They are no copies: many members do not serve the API. */
export class ExportController {
  readonly #options: ExportControllerOptions;
  readonly #exports: Exports;
  readonly #status: ExportStatus;
  readonly #loop: Controller<CopyKey, ObservedCopy, ExportAction>;
  #sources: Reflector<ServiceExport> | undefined;
  #ending: Timer | undefined;
  #stopped = false;

  constructor(options: ExportControllerOptions) {
    this.#options = options;
    const { identity, recorder, registry, clock } = options;
    this.#exports = new Exports({
      host: identity,
      recorder,
      clock,
      onMade: (member) => this.#status.listenTo(member),
    });
    this.#status = new ExportStatus({
      ...options,
      hostId: identity.id,
      exportOf: (namespace, name) => this.#exportOf(namespace, name),
    });
    this.#loop = new Controller<CopyKey, ObservedCopy, ExportAction>(
      {
        name: "exports",
        observe: (key) => this.#observe(key),
        decide: decideExport,
        execute: (action, context) =>
          inMember(registry, action.ref.member, (member) =>
            action.type === "export"
              ? this.#exports.make(member, action, context)
              : this.#exports.remove(member, action, context),
          ),
      },
      options,
    );
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#ending?.cancel();
    await this.#sources?.stop();
    await this.#status.stop();
    await this.#loop.stop();
  }

  /** Reads the host's ServiceExports from the first proxy on. */
  need(): void {
    this.#ending?.cancel();
    this.#ending = undefined;
    if (this.#sources !== undefined || this.#stopped) return;
    const { host: client, clock, log } = this.#options;
    this.#sources = new Reflector<ServiceExport>({
      client,
      resource: serviceExports,
      // They tell which conditions are Legation's.
      keepManagedFields: true,
      clock,
      log,
      onEvent: ({ object }) => this.#onExport(object.metadata.namespace ?? "", object.metadata.name),
    });
    this.#sources.start();
    void this.#sources.whenSynced().then(() => this.onRead());
  }

  release(): void {
    this.#ending ??= this.#options.clock.after(UNUSED_EXPORT_KEPT_MS, () => {
      this.#ending = undefined;
      void this.#sources?.stop();
      this.#sources = undefined;
    });
  }

  onMembers(members: readonly Member[]): void {
    this.#status.onMembers(members);
    this.#loop.enqueueKnown((key) => this.#options.registry.member(copyRef(key).member) === undefined);
  }

  onCopy(member: string, namespace: string, name: string): void {
    this.#loop.enqueue(copyKey({ member, kind: SERVICE, namespace, name }));
  }

  /** Default: of all members, as the host's objects were read. */
  onRead(members: readonly Member[] = this.#options.registry.members()): void {
    for (const member of members) {
      for (const { kind, namespace, name } of this.#options.copier.copies.in(member)) {
        if (kind === SERVICE) this.onCopy(member.name, namespace, name);
      }
    }
  }

  /** Removes a ServiceExport before its copy goes. Rejects with KubeError. */
  removeExport(
    member: Member,
    ref: { readonly namespace: string; readonly name: string },
    signal: AbortSignal,
  ): Promise<void> {
    const key = copyKey({ member: member.name, kind: SERVICE, namespace: ref.namespace, name: ref.name });
    return this.#exports.removeExport(member, ref, { key, signal });
  }

  #onExport(namespace: string, name: string): void {
    this.#status.onExport(namespace, name);
    for (const member of this.#options.registry.members()) this.onCopy(member.name, namespace, name);
  }

  #exportOf(namespace: string, name: string): ExportSource {
    const store = this.#sources?.store;
    if (store?.synced !== true) return { state: "unknown" };
    const object = store.get(objectKey({ namespace, name }));
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) return { state: "missing" };
    return { state: "present", object };
  }

  #observe(key: CopyKey): ObservedCopy | undefined {
    const { registry, copier } = this.#options;
    const ref = copyRef(key);
    const { namespace, name } = ref;
    const member = registry.member(ref.member);
    const copy = member && copier.copies.of(member, SERVICE, namespace, name);
    if (member === undefined || copy === undefined) {
      this.#exports.forget(key);
      return undefined;
    }
    const { stays } = copier.standing(member, ref);
    return {
      ref,
      copy,
      usable: member.reachable && stays && copier.sources.of(ref).state === "present",
      exported: this.#options.exportsItself(ref.member) ? { state: "missing" } : this.#exportOf(namespace, name),
      due: this.#exports.due(key, copy.metadata.uid),
    };
  }
}
