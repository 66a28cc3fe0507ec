import { EXPORTED_ANNOTATION } from "../../../api/keys.ts";
import {
  type KubeObject,
  type ObjectRef,
  objectKey,
  type ServiceExport,
  type Stored,
} from "../../../api/kubernetes.ts";
import { memoized } from "../../../api/memoized.ts";
import type { Member } from "../../../clusters/member.ts";
import { isCopy } from "../../../copies/copy-metadata.ts";
import { isExported, type ServiceObject, toExport } from "../../../copies/services.ts";
import { ignoring, isKubeError, isRefusal } from "../../../kube/errors.ts";
import { findByList } from "../../../kube/list.ts";
import { withoutAmounts } from "../../../kube/messages.ts";
import { resourceOf, ServedResource } from "../../../kube/optional-resource.ts";
import { apiVersionOf, serviceExports, services } from "../../../kube/resources.ts";
import type { Timer } from "../../../runtime/clock.ts";
import { type ActionContext, Controller, type Expectation } from "../../../runtime/controller.ts";
import { referenceTo } from "../../../runtime/kube-event.ts";
import { Reflector } from "../../../runtime/reflector.ts";
import { FORGET_HELD_FAILURE_MS, WriteGuard } from "../../../runtime/write-guard.ts";
import type { Copier } from "../../copying/copier.ts";
import { type CopyKey, copyKey, copyRef } from "../../copying/model.ts";
import type { PodCopierOptions } from "../../copying/pod-copier.ts";
import { inMember } from "../../copying/writer.ts";
import { decideExport, type ExportAction, type ExportSource, type ObservedCopy } from "./decide.ts";
import { ExportStatus } from "./status.ts";

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
// ServiceExports in members are not watched; one that a client deletes there is back after this long.
const READ_AGAIN_MS = 10 * 60_000;
// The write's name for the write guard, which holds it for the copy that has its ServiceExport, too.
const EXPORT = "export";
const API = `${serviceExports.kind} of ${serviceExports.group}`;
const UNDERSTOOD = serviceExports.versions.join(" or ");

/**
 * Makes ServiceExports beside copies. They are no copies: many members do not serve the API. A copy is marked first, so that the
 * next leader knows of the ServiceExport.
 */
export class ExportController {
  readonly #options: ExportControllerOptions;
  readonly #status: ExportStatus;
  readonly #loop: Controller<CopyKey, ObservedCopy, ExportAction>;
  readonly #guard: WriteGuard<CopyKey>;
  readonly #in = memoized(({ client }: Member) => new ServedResource(client, serviceExports));
  #sources: Reflector<ServiceExport> | undefined;
  #ending: Timer | undefined;
  #stopped = false;

  constructor(options: ExportControllerOptions) {
    this.#options = options;
    const { identity, registry, clock } = options;
    this.#guard = new WriteGuard({ clock, forgetFailureMs: FORGET_HELD_FAILURE_MS });
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
          inMember(registry, action.ref.member, (member) => this.#execute(member, action, context)),
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
    this.#loop.enqueue(keyOf(member, namespace, name));
  }

  /** Default: of all members, as the host's objects were read. */
  onRead(members: readonly Member[] = this.#options.registry.members()): void {
    for (const member of members) {
      for (const { kind, namespace, name } of this.#options.copier.copies.in(member)) {
        if (kind === SERVICE) this.onCopy(member.name, namespace, name);
      }
    }
  }

  /**
   * Removes a ServiceExport before its copy goes: the member's garbage collector would leave it for a while, and might take that of
   * a new copy. Rejects with KubeError.
   */
  async removeExport(member: Member, { namespace = "", name }: ObjectRef, signal: AbortSignal): Promise<void> {
    this.#guard.forget(keyOf(member.name, namespace, name));
    try {
      await this.#in(member).use(async (resource) => {
        const there = await findByList(member.client, resource, { namespace, name }, signal);
        if (there === undefined || !isCopy(there, this.#options.identity.id, serviceExports)) return;
        await member.client.delete(resource, { namespace, name }, { uid: there.metadata.uid, signal });
      }, signal);
    } catch (error) {
      if (isKubeError(error, "NotFound", "Conflict")) return;
      const key = keyOf(member.name, namespace, name);
      if (!isRefusal(error) || this.#guard.failed(key, EXPORT, error) === "transient") throw error;
    }
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
    const { registry, copier, exportsItself } = this.#options;
    const ref = copyRef(key);
    const { namespace, name } = ref;
    const member = registry.member(ref.member);
    const copy = member && copier.copies.of(member, SERVICE, namespace, name);
    if (member === undefined || copy === undefined) {
      this.#guard.forget(key);
      return undefined;
    }
    const { stays } = copier.standing(member, ref);
    return {
      ref,
      copy,
      usable: member.reachable && stays && copier.sources.of(ref).state === "present",
      exported: exportsItself(ref.member) ? { state: "missing" } : this.#exportOf(namespace, name),
      // A copy that is made anew has no ServiceExport.
      due: this.#guard.heldUntil(key, EXPORT, copy.metadata.uid) ?? 0,
    };
  }

  async #execute(
    member: Member,
    action: ExportAction,
    context: ActionContext<CopyKey>,
  ): Promise<Expectation<ObservedCopy> | undefined> {
    const { ref, copy } = action;
    const { uid } = copy.metadata;
    const { key, signal, log } = context;
    if (action.type === "unexport") {
      await this.removeExport(member, ref, signal);
      await mark(member, copy, null, signal);
      return ({ copy: shown }) => shown.metadata.uid !== uid || !isExported(shown);
    }
    const { source } = action;
    if (!isExported(copy) && !(await mark(member, copy, "true", signal))) return undefined;
    const problem = await this.#make(member, action, context);
    const hold = { content: uid, holdMs: READ_AGAIN_MS };
    if (problem === undefined) {
      this.#status.listenTo(member);
      this.#guard.done(key, EXPORT);
      this.#guard.hold(key, EXPORT, "NoEffect", hold);
    } else if (this.#guard.refuse(key, EXPORT, { message: problem, dedupe: withoutAmounts(problem) }, hold)) {
      log.info(problem);
      const exported = referenceTo(resourceOf(serviceExports, source), source);
      this.#options.recorder.record(exported, { reason: "NotExported", message: `${ref.member}: ${problem}` });
    }
    return ({ copy: shown }) => shown.metadata.uid !== uid || isExported(shown);
  }

  /** Returns why the member has no ServiceExport until somebody acts. */
  async #make(
    member: Member,
    { ref, copy, source }: Extract<ExportAction, { readonly type: "export" }>,
    { key, signal }: ActionContext<CopyKey>,
  ): Promise<string | undefined> {
    try {
      const made = await this.#in(member).use((resource) => {
        const object = toExport(copy, source, this.#options.identity, apiVersionOf(resource));
        return member.client.create(resource, object, { signal, metadataOnly: true });
      }, signal);
      return made === undefined
        ? `it serves no ${API} as ${UNDERSTOOD}, so the Service ${ref.name} is not exported from there`
        : undefined;
    } catch (error) {
      if (isKubeError(error, "AlreadyExists")) return undefined;
      if (!isRefusal(error) || this.#guard.failed(key, EXPORT, error) === "transient") throw error;
      return `its API server refused the ServiceExport: ${error.detail}`;
    }
  }
}

function keyOf(member: string, namespace: string, name: string): CopyKey {
  return copyKey({ member, kind: SERVICE, namespace, name });
}

/** Returns false if the copy is gone or replaced, as the watch will show. */
async function mark(
  { client }: Member,
  { metadata: { namespace = "", name, uid } }: Stored<KubeObject>,
  value: string | null,
  signal: AbortSignal,
): Promise<boolean> {
  const body = { metadata: { uid, annotations: { [EXPORTED_ANNOTATION]: value } } };
  const marked = client.patch(services, { namespace, name }, { type: "merge", body }, { signal, metadataOnly: true });
  return (await ignoring(marked, "NotFound", "Conflict")) !== undefined;
}
