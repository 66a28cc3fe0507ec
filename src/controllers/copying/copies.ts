import { COPY_LABEL, COPY_LABEL_VALUE, HOST_LABEL } from "../../api/keys.ts";
import { type KubeObject, objectKey, type Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { MemberWatches } from "../../clusters/member-watches.ts";
import { isCopy, isLabelled } from "../../copies/copy.ts";
import { heapBytesOfObject } from "../../kube/json.ts";
import type { Resource } from "../../kube/resources.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Reflector } from "../../runtime/reflector.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { Logger } from "../../telemetry/logger.ts";

/** Names one copy within its member. */
export interface CopyName<Kind extends string> {
  readonly kind: Kind;
  readonly namespace: string;
  readonly name: string;
}

export interface CopiesOptions<Kind extends string, T extends KubeObject> {
  readonly hostId: string;
  /** What is copied, each as a kind of its own. */
  readonly resources: ReadonlyMap<Kind, Resource<T>>;
  /** Those that do not say whose they are, too. What only has the labels of one may be somebody else's. */
  readonly unowned?: boolean;
  /** Makes copies smaller before they are kept. */
  readonly transform: (kind: Kind, object: Stored<T>) => Stored<T>;
  /** How many objects to ask for at once; default: what the reflector asks for. */
  readonly pageSize?: number;
  /** A copy came, changed or went. */
  readonly onCopy: (member: Member, copy: CopyName<Kind>) => void;
  /** A member's copies have been read. */
  readonly onRead: (member: Member) => void;
  /** Whether what is shown of a member is current may have another answer. */
  readonly onState?: (member: Member) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

const NAMESPACE_INDEX = "namespace";

/** The copies of some kinds of objects in all members, by watch. */
export class Copies<Kind extends string, T extends KubeObject> {
  readonly #options: CopiesOptions<Kind, T>;
  readonly #watches: ReadonlyMap<Kind, MemberWatches<Reflector<T>>>;

  constructor(options: CopiesOptions<Kind, T>) {
    this.#options = options;
    this.#watches = new Map(
      [...options.resources].map(([kind, resource]) => [
        kind,
        new MemberWatches((member) => this.#reflector(member, kind, resource)),
      ]),
    );
  }

  /** Watches these members and no others. */
  follow(members: readonly Member[]): void {
    for (const watches of this.#watches.values()) watches.follow(members);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#watches.values()].map((watches) => watches.stop()));
  }

  /** The member's copies have been listed since it was connected. */
  read(member: Member): boolean {
    return this.#of(member).every((reflector) => reflector?.store.synced === true);
  }

  /** What is shown of the member is what is there, but for what is on its way. */
  isCurrent(member: Member): boolean {
    return this.#of(member).every((reflector) => reflector?.state === "watching");
  }

  /** Why the member's copies cannot be read at present. */
  failing(member: Member): string | undefined {
    return this.#of(member).find((reflector) => reflector?.state === "backing-off")?.failing?.reason;
  }

  of(member: Member, kind: Kind, namespace: string, name: string): Stored<T> | undefined {
    const found = this.#store(member, kind)?.get(objectKey({ namespace, name }));
    const isOurs = this.#options.unowned === true ? isLabelled : isCopy;
    return found !== undefined && isOurs(found, this.#options.hostId) ? found : undefined;
  }

  /** Names of all copies in a member. */
  in(member: Member): CopyName<Kind>[] {
    return [...this.#watches.keys()].flatMap((kind) => {
      const copies = this.#store(member, kind)?.list() ?? [];
      return copies.map(({ metadata }) => nameOf(kind, metadata));
    });
  }

  /** Names of the copies of a kind in one namespace of a member. */
  inNamespace(member: Member, kind: Kind, namespace: string): CopyName<Kind>[] {
    const copies = this.#store(member, kind)?.byIndex(NAMESPACE_INDEX, namespace) ?? [];
    return copies.map(({ metadata }) => nameOf(kind, metadata));
  }

  /** One for each kind; undefined when the member is not followed. */
  #of(member: Member): (Reflector<T> | undefined)[] {
    return [...this.#watches.values()].map((watches) => watches.of(member));
  }

  #store(member: Member, kind: Kind): ReadStore<T> | undefined {
    return this.#watches.get(kind)?.of(member)?.store;
  }

  #reflector(member: Member, kind: Kind, resource: Resource<T>): Reflector<T> {
    const { hostId, transform, pageSize, onCopy, onRead, onState, clock } = this.#options;
    const reflector = new Reflector<T>({
      client: member.client,
      resource,
      labelSelector: `${HOST_LABEL}=${hostId},${COPY_LABEL}=${COPY_LABEL_VALUE}`,
      transform: (object) => transform(kind, object),
      ...(pageSize === undefined ? {} : { pageSize }),
      budget: member.memory,
      // Of large objects the content is dropped as it comes.
      sizeOf: heapBytesOfObject,
      indexes: { [NAMESPACE_INDEX]: ({ metadata: { namespace = "" } }) => [namespace] },
      clock,
      log: this.#options.log.child({ member: member.name }),
      onEvent: ({ object }) => onCopy(member, nameOf(kind, object.metadata)),
      onState: () => onState?.(member),
    });
    void reflector.whenSynced().then(() => {
      if (this.read(member)) onRead(member);
    });
    return reflector;
  }
}

function nameOf<Kind extends string>(
  kind: Kind,
  { namespace = "", name }: { namespace?: string; name: string },
): CopyName<Kind> {
  return { kind, namespace, name };
}
