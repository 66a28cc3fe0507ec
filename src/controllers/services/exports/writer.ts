import { EXPORTED_ANNOTATION } from "../../../api/keys.ts";
import { memoized } from "../../../api/memoized.ts";
import type { Member } from "../../../clusters/member.ts";
import { isCopy } from "../../../copies/copy-metadata.ts";
import { isExported, toExport } from "../../../copies/services.ts";
import { ignoring, isKubeError, isRefusal } from "../../../kube/errors.ts";
import { findByList } from "../../../kube/list.ts";
import { withoutAmounts } from "../../../kube/messages.ts";
import { resourceOf, ServedResource } from "../../../kube/optional-resource.ts";
import { apiVersionOf, serviceExports, services } from "../../../kube/resources.ts";
import type { HostIdentity } from "../../../pods/delegate.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { ActionContext, Expectation } from "../../../runtime/controller.ts";
import type { EventRecorder } from "../../../runtime/event-recorder.ts";
import { referenceTo } from "../../../runtime/kube-event.ts";
import { FORGET_HELD_FAILURE_MS, WriteGuard } from "../../../runtime/write-guard.ts";
import type { CopyKey } from "../../copying/model.ts";
import type { ExportAction, ObservedCopy } from "./decide.ts";

export interface ExportsOptions {
  readonly host: HostIdentity;
  readonly recorder: Pick<EventRecorder, "record">;
  readonly onMade: (member: Member) => void;
  readonly clock: Pick<Clock, "now">;
}

type Context = ActionContext<CopyKey>;
type ActionOf<Type extends ExportAction["type"]> = Extract<ExportAction, { readonly type: Type }>;
type Result = Promise<Expectation<ObservedCopy> | undefined>;

// ServiceExports in members are not watched; one that a client deletes there is back after this long.
const READ_AGAIN_MS = 10 * 60_000;
const EXPORT = "export";
const API = `${serviceExports.kind} of ${serviceExports.group}`;
const UNDERSTOOD = serviceExports.versions.join(" or ");

/** Makes ServiceExports beside copies. A copy is marked first, so that the next leader knows of the ServiceExport. */
export class Exports {
  readonly #options: ExportsOptions;
  readonly #guard: WriteGuard<CopyKey>;
  readonly #in = memoized(({ client }: Member) => new ServedResource(client, serviceExports));
  readonly #made = new Map<CopyKey, { readonly copyUid: string; readonly due: number }>();

  constructor(options: ExportsOptions) {
    this.#options = options;
    this.#guard = new WriteGuard({ clock: options.clock, forgetFailureMs: FORGET_HELD_FAILURE_MS });
  }

  /** Returns when the ServiceExport is to be made again; epoch ms. */
  due(key: CopyKey, copyUid: string): number {
    const made = this.#made.get(key);
    return made?.copyUid === copyUid ? made.due : 0;
  }

  forget(key: CopyKey): void {
    this.#made.delete(key);
    this.#guard.forget(key);
  }

  async make(member: Member, { ref, copy, source }: ActionOf<"export">, { key, signal, log }: Context): Result {
    const { host, clock, recorder } = this.#options;
    const { uid } = copy.metadata;
    if (!isExported(copy) && !(await this.#mark(member, copy.metadata, "true", signal))) return () => true;
    const due = clock.now() + READ_AGAIN_MS;
    let problem: string | undefined;
    try {
      const made = await this.#in(member).use((resource) => {
        const object = toExport(copy, source, host, apiVersionOf(resource));
        return member.client.create(resource, object, { signal, metadataOnly: true });
      }, signal);
      if (made === undefined) {
        problem = `it serves no ${API} as ${UNDERSTOOD}, so the Service ${ref.name} is not exported from there`;
      }
    } catch (error) {
      if (isRefusal(error) && this.#guard.failed(key, EXPORT, error) !== "transient") {
        problem = `its API server refused the ServiceExport: ${error.detail}`;
      } else if (!isKubeError(error, "AlreadyExists")) throw error;
    }
    if (problem === undefined) this.#options.onMade(member);
    this.#made.set(key, { copyUid: uid, due });
    if (problem === undefined) this.#guard.done(key, EXPORT);
    else if (
      this.#guard.refuse(key, EXPORT, { message: problem, dedupe: withoutAmounts(problem) }, { holdMs: READ_AGAIN_MS })
    ) {
      log.info(problem);
      const exported = referenceTo(resourceOf(serviceExports, source), source);
      recorder.record(exported, { reason: "NotExported", message: `${ref.member}: ${problem}` });
    }
    return ({ copy: shown }) => shown.metadata.uid !== uid || isExported(shown);
  }

  async remove(member: Member, { ref, copy }: ActionOf<"unexport">, { key, signal }: Context): Result {
    await this.removeExport(member, ref, { key, signal });
    await this.#mark(member, copy.metadata, null, signal);
    const { uid } = copy.metadata;
    return ({ copy: shown }) => shown.metadata.uid !== uid || !isExported(shown);
  }

  /** The member's garbage collector would leave the ServiceExport for a while, and might take that of a new copy. */
  async removeExport(
    member: Member,
    { namespace, name }: { readonly namespace: string; readonly name: string },
    { key, signal }: Pick<Context, "key" | "signal">,
  ): Promise<void> {
    this.#made.delete(key);
    try {
      await this.#in(member).use(async (resource) => {
        const there = await findByList(member.client, resource, { namespace, name }, signal);
        if (there === undefined || !isCopy(there, this.#options.host.id, serviceExports)) return;
        await member.client.delete(resource, { namespace, name }, { uid: there.metadata.uid, signal });
      }, signal);
    } catch (error) {
      if (!isRefusal(error) && !isKubeError(error, "NotFound", "Conflict")) throw error;
      if (isRefusal(error) && this.#guard.failed(key, EXPORT, error) === "transient") throw error;
    }
  }

  /** Returns false if the copy is gone or replaced. */
  async #mark(
    member: Member,
    { namespace = "", name, uid }: { namespace?: string; name: string; uid: string },
    mark: string | null,
    signal: AbortSignal,
  ): Promise<boolean> {
    const body = { metadata: { uid, annotations: { [EXPORTED_ANNOTATION]: mark } } };
    const options = { signal, metadataOnly: true };
    const marked = member.client.patch(services, { namespace, name }, { type: "merge", body }, options);
    return (await ignoring(marked, "NotFound", "Conflict")) !== undefined;
  }
}
