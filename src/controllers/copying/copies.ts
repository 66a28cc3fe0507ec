import { COPY_LABEL, COPY_LABEL_VALUE, HOST_LABEL } from "../../api/keys.ts";
import { type KubeObject, objectKey, type Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { Resource } from "../../kube/resources.ts";
import { isCopy, isLabelled } from "../../pods/dependencies-copy.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Reflector, sizeAsKept } from "../../runtime/reflector.ts";
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

type Reflectors<Kind, T extends KubeObject> = ReadonlyMap<Kind, Reflector<T>>;

/** The copies of some kinds of objects in all members, by watch. */
export class Copies<Kind extends string, T extends KubeObject> {
  readonly #options: CopiesOptions<Kind, T>;
  readonly #members = new Map<Member, Reflectors<Kind, T>>();

  constructor(options: CopiesOptions<Kind, T>) {
    this.#options = options;
  }

  /** Watches these members and no others. */
  follow(members: readonly Member[]): void {
    for (const [member, reflectors] of this.#members) {
      if (members.includes(member)) continue;
      this.#members.delete(member);
      for (const reflector of reflectors.values()) void reflector.stop();
    }
    for (const member of members) {
      if (this.#members.has(member)) continue;
      const reflectors = new Map(
        [...this.#options.resources].map(([kind, resource]) => [kind, this.#reflector(member, kind, resource)]),
      );
      this.#members.set(member, reflectors);
      for (const reflector of reflectors.values()) reflector.start();
      void Promise.all([...reflectors.values()].map((reflector) => reflector.whenSynced())).then(() =>
        this.#options.onRead(member),
      );
    }
  }

  async stop(): Promise<void> {
    const all = [...this.#members.values()].flatMap((reflectors) => [...reflectors.values()]);
    await Promise.all(all.map((reflector) => reflector.stop()));
  }

  /** The member's copies have been listed since it was connected. */
  read(member: Member): boolean {
    const reflectors = this.#members.get(member);
    return reflectors !== undefined && [...reflectors.values()].every(({ store }) => store.synced);
  }

  /** What is shown of the member is what is there, but for what is on its way. */
  isCurrent(member: Member): boolean {
    const reflectors = this.#members.get(member);
    return reflectors !== undefined && [...reflectors.values()].every(({ state }) => state === "watching");
  }

  /** Why the member's copies cannot be read at present. */
  failing(member: Member): string | undefined {
    const reflectors = [...(this.#members.get(member)?.values() ?? [])];
    return reflectors.find(({ state }) => state === "backing-off")?.failing?.reason;
  }

  /** The member answers again: its watches need not wait any longer. */
  retry(member: Member): void {
    for (const reflector of this.#members.get(member)?.values() ?? []) reflector.retry();
  }

  of(member: Member, kind: Kind, namespace: string, name: string): Stored<T> | undefined {
    const found = this.#members.get(member)?.get(kind)?.store.get(objectKey({ namespace, name }));
    const isOurs = this.#options.unowned === true ? isLabelled : isCopy;
    return found !== undefined && isOurs(found, this.#options.hostId) ? found : undefined;
  }

  /** Names of all copies in a member. */
  in(member: Member): CopyName<Kind>[] {
    return [...(this.#members.get(member) ?? [])].flatMap(([kind, { store }]) =>
      store.list().map(({ metadata }) => nameOf(kind, metadata)),
    );
  }

  /** Names of the copies of a kind in one namespace of a member. */
  inNamespace(member: Member, kind: Kind, namespace: string): CopyName<Kind>[] {
    const store = this.#members.get(member)?.get(kind)?.store;
    return store?.byIndex(NAMESPACE_INDEX, namespace).map(({ metadata }) => nameOf(kind, metadata)) ?? [];
  }

  #reflector(member: Member, kind: Kind, resource: Resource<T>): Reflector<T> {
    const { hostId, transform, pageSize, onCopy, onState, clock } = this.#options;
    return new Reflector<T>({
      client: member.client,
      resource,
      labelSelector: `${HOST_LABEL}=${hostId},${COPY_LABEL}=${COPY_LABEL_VALUE}`,
      transform: (object) => transform(kind, object),
      ...(pageSize === undefined ? {} : { pageSize }),
      budget: member.memory,
      // Of large objects the content is dropped as it comes.
      sizeOf: sizeAsKept,
      indexes: { [NAMESPACE_INDEX]: ({ metadata: { namespace = "" } }) => [namespace] },
      clock,
      log: this.#options.log.child({ member: member.name }),
      onEvent: ({ object }) => onCopy(member, nameOf(kind, object.metadata)),
      onState: () => onState?.(member),
    });
  }
}

function nameOf<Kind extends string>(
  kind: Kind,
  { namespace = "", name }: { namespace?: string; name: string },
): CopyName<Kind> {
  return { kind, namespace, name };
}
