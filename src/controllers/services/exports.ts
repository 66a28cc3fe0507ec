import { EXPORTED_ANNOTATION } from "../../api/keys.ts";
import type { ServiceExport } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { isCopy } from "../../copies/copy.ts";
import { isExported, toExport } from "../../copies/services.ts";
import { isKubeError, isRefusal } from "../../kube/errors.ts";
import { findByList } from "../../kube/list.ts";
import { resourceOf, ServedResource } from "../../kube/optional-resource.ts";
import { apiVersionOf, serviceExports, services } from "../../kube/resources.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ActionContext, Shown } from "../../runtime/controller.ts";
import { referenceTo } from "../../runtime/event.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import { Denials } from "../denials.ts";
import { type LastTold, toldNow } from "../told-for.ts";
import type { ActionOf, CopyKey, Observed } from "./model.ts";

export interface ExportsOptions {
  readonly host: HostIdentity;
  readonly recorder: EventRecorder;
  /** The member has one now, or had it already. */
  readonly onMade: (member: Member) => void;
  readonly clock: Pick<Clock, "now">;
}

type Context = ActionContext<CopyKey>;
type Result = Promise<Shown<Observed> | undefined>;

// ServiceExports in members are not watched; one that somebody has deleted there is back after this long.
const AGAIN_MS = 10 * 60_000;
const API = `${serviceExports.kind} of ${serviceExports.group}`;
const UNDERSTOOD = serviceExports.versions.join(" or ");

/**
 * Makes ServiceExports beside copies. Whether there is one is written down on the copy before, so that it is removed
 * whoever leads then; the copy owns it, so that it goes with the copy.
 */
export class Exports {
  readonly #options: ExportsOptions;
  readonly #denials: Denials;
  readonly #served = new WeakMap<Member, ServedResource<ServiceExport>>();
  readonly #made = new Map<CopyKey, { readonly copyUid: string; readonly due: number; readonly told?: LastTold }>();

  constructor(options: ExportsOptions) {
    this.#options = options;
    this.#denials = new Denials(options.clock);
  }

  /** When the member is to be told next; epoch ms. */
  due(key: CopyKey, copyUid: string): number {
    const made = this.#made.get(key);
    return made?.copyUid === copyUid ? made.due : 0;
  }

  forget(key: CopyKey): void {
    this.#made.delete(key);
  }

  async make(member: Member, { ref, copy, source }: ActionOf<"export">, { key, signal, log }: Context): Result {
    const { host, clock, recorder } = this.#options;
    const { uid } = copy.metadata;
    if (!isExported(copy) && !(await this.#mark(member, copy.metadata, "true", signal))) return () => true;
    const due = clock.now() + AGAIN_MS;
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
      if (isRefusal(error) && !this.#denials.mayPass(error)) {
        problem = `its API server refused the ServiceExport: ${error.detail}`;
      } else if (!isKubeError(error, "AlreadyExists")) throw error;
    }
    if (problem === undefined) this.#options.onMade(member);
    const last = this.#made.get(key)?.told;
    const told = problem === undefined ? undefined : toldNow(problem, last, clock.now());
    this.#made.set(key, { copyUid: uid, due, ...(told === undefined ? {} : { told }) });
    if (told !== undefined && told !== last) {
      log.info(told.message);
      const exported = referenceTo(resourceOf(serviceExports, source), source);
      recorder.record(exported, { reason: "NotExported", message: `${ref.member}: ${told.message}` });
    }
    return ({ copy: shown }) => shown === undefined || shown.metadata.uid !== uid || isExported(shown);
  }

  async remove(member: Member, { ref, copy }: ActionOf<"unexport">, { key, signal }: Context): Result {
    const { namespace, name } = ref;
    this.#made.delete(key);
    try {
      await this.#in(member).use(async (resource) => {
        const there = await findByList(member.client, resource, { namespace, name }, signal);
        if (there === undefined || !isCopy(there, this.#options.host.id)) return;
        await member.client.delete(resource, { namespace, name }, { uid: there.metadata.uid, signal });
      }, signal);
    } catch (error) {
      if (!isRefusal(error) && !isKubeError(error, "NotFound", "Conflict")) throw error;
      if (this.#denials.mayPass(error)) throw error;
    }
    await this.#mark(member, copy.metadata, null, signal);
    const { uid } = copy.metadata;
    return ({ copy: shown }) => shown === undefined || shown.metadata.uid !== uid || !isExported(shown);
  }

  #in(member: Member): ServedResource<ServiceExport> {
    const known = this.#served.get(member) ?? new ServedResource(member.client, serviceExports);
    this.#served.set(member, known);
    return known;
  }

  /** False when the copy is another by now. */
  async #mark(
    member: Member,
    { namespace = "", name, uid }: { namespace?: string; name: string; uid: string },
    mark: string | null,
    signal: AbortSignal,
  ): Promise<boolean> {
    const body = { metadata: { uid, annotations: { [EXPORTED_ANNOTATION]: mark } } };
    try {
      await member.client.patch(services, { namespace, name }, { type: "merge", body }, { signal, metadataOnly: true });
      return true;
    } catch (error) {
      if (!isKubeError(error, "NotFound", "Conflict")) throw error;
      return false;
    }
  }
}
