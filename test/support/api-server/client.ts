import type { KubeObject, Stored } from "../../../src/api/kubernetes.ts";
import type {
  ClusterClient,
  ListOptions,
  RequestOptions,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from "../../../src/kube/client.ts";
import { isKubeError, KubeError, type KubeErrorCode } from "../../../src/kube/errors.ts";
import { type ErrorSubject, errorFromAnswer } from "../../../src/kube/internal/status.ts";
import { isStored, type Resource } from "../../../src/kube/resources.ts";
import { type AnswerParts, partsOf } from "./answer-parts.ts";
import type { ApiServer, Write } from "./api-server.ts";
import type { StoredObject } from "./object-store.ts";
import { forbidden, Refusal } from "./refusal.ts";
import { answerTo } from "./routes.ts";
import { createSubresource } from "./subresources.ts";

/** How a request fares on its way. `late`: it is carried out after its sender was told that the answer is lost. */
export type Fate = "answered" | "not sent" | "answer lost" | "late" | "dropped";

/** A request, by what it asks for. */
export type Subject = Omit<ErrorSubject, "cluster">;

/** The way between a client and the server: the layer of faults. Without one, requests are answered at once. */
export interface Way {
  /** Delays a step by some milliseconds, or fails it. */
  readonly pause: () => Promise<void>;
  readonly fate: () => Fate;
  /** Reports whether watches of a resource stay open. */
  readonly isOpen: (plural: string) => boolean;
  /** Reports whether lists of a resource fail, as they do while a conversion webhook refuses. Default: none fails. */
  readonly failsToList?: (plural: string) => boolean;
  /** Reports whether the account may make the request. Default: it may make all. */
  readonly permits?: (asked: Subject) => boolean;
}

export const AT_ONCE: Way = { pause: async () => {}, fate: () => "answered", isOpen: () => true };

/** Returns a client of the server in this process. `by` is its field manager. */
export function clientOf(
  server: ApiServer,
  { by = "test", way: differences }: { readonly by?: string; readonly way?: Partial<Way> } = {},
): ClusterClient {
  const way = { ...AT_ONCE, ...differences };
  const requests = new Requests(server, way);
  const write = (options: WriteOptions): Write => ({ ...options, by: options.fieldManager ?? by });
  const get: ClusterClient["get"] = async (resource, ref, options) =>
    requests.object(subjectOf("get", resource, ref), options, () => server.get(resource, ref));
  return {
    cluster: server.name,
    get,
    find: (resource, ref, options) =>
      get(resource, ref, options).catch((error: unknown) => {
        if (isKubeError(error, "NotFound")) return undefined;
        throw error;
      }),
    list: async <T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}) => {
      const page = await requests.send(subjectOf("list", resource, { namespace: options.namespace }), options, () => {
        if (way.failsToList?.(resource.plural) === true)
          throw new Refusal(500, "InternalError", "conversion webhook failed");
        return server.list(resource, options);
      });
      return { ...page, items: page.items.map((item) => typed<T>(partsOf(item, options))), size: 1 };
    },
    create: async (resource, object, options = {}) => {
      const subject = subjectOf("create", resource, { ...object.metadata }, options.subresource);
      return requests.object(subject, options, () => server.create(resource, object, write(options)));
    },
    createSubresource: (resource, ref, subresource, body, options) =>
      requests.send(subjectOf("create", resource, ref, subresource), options, () =>
        createSubresource(server, resource, ref, subresource, body),
      ),
    replace: async (resource, object, options = {}) =>
      requests.object(subjectOf("update", resource, { ...object.metadata }, options.subresource), options, () =>
        server.replace(resource, object, write(options)),
      ),
    patch: async (resource, ref, patch, options = {}) =>
      requests.object(subjectOf("patch", resource, ref, options.subresource), options, () =>
        server.patch(resource, ref, patch, write(options)),
      ),
    delete: async (resource, ref, options = {}) => {
      await requests.send(subjectOf("delete", resource, ref), options, () =>
        server.delete(resource, ref, { ...options, by }),
      );
    },
    raw: async (request) => {
      const subject = { verb: request.method, resource: "raw", objectName: request.path };
      return requests.send(subject, request, () => answerTo(server, request, by));
    },
    watch: (resource, options) => requests.watch(resource, options),
    upgrade: () => Promise.reject(new Error("the API server in memory upgrades no connection")),
    stream: () => Promise.reject(new Error("the API server in memory has no streams")),
    close: async () => {},
  };
}

/** Carries requests to the server as their way says. */
class Requests {
  readonly #server: ApiServer;
  readonly #way: Way;

  constructor(server: ApiServer, way: Way) {
    this.#server = server;
    this.#way = way;
  }

  async send<T>(subject: Subject, options: RequestOptions | undefined, act: () => T): Promise<T> {
    const way = this.#way;
    if (options?.signal?.aborted === true) throw this.#lost("Aborted", "the caller gave up", subject);
    await way.pause();
    const fate = way.fate();
    if (fate === "not sent") throw this.#lost("NotSent", "no connection", subject);
    if (fate === "late") {
      void way
        .pause()
        .then(way.pause)
        .then(act)
        .catch(() => undefined);
    }
    if (fate === "late" || fate === "dropped") throw this.#lost("AnswerLost", "no answer", subject);
    const answer = this.#answered(subject, act);
    await way.pause();
    if (fate === "answer lost") throw this.#lost("AnswerLost", "no answer", subject);
    return answer;
  }

  async object<T extends KubeObject>(
    subject: Subject,
    options: (RequestOptions & AnswerParts) | undefined,
    act: () => StoredObject,
  ): Promise<Stored<T>> {
    return typed<T>(partsOf(await this.send(subject, options, act), options));
  }

  async *watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): AsyncGenerator<WatchEvent<T>> {
    const way = this.#way;
    const { signal, onOpen } = options;
    const subject = subjectOf("watch", resource, { namespace: options.namespace });
    if (signal.aborted) throw this.#lost("Aborted", "the caller gave up", subject);
    await way.pause();
    const fate = way.fate();
    if (fate !== "answered" && fate !== "answer lost") throw this.#lost("NotSent", "no connection", subject);
    const watch = this.#answered(subject, () => this.#server.watch(resource, options));
    try {
      onOpen?.();
      for (;;) {
        if (signal.aborted) throw this.#lost("Aborted", "the caller gave up", subject);
        if (!way.isOpen(resource.plural)) throw this.#lost("AnswerLost", "the watch was cut", subject);
        const event = watch.next();
        if (event === undefined) {
          if (watch.isOver) return;
          await watch.changed(signal);
          continue;
        }
        await way.pause();
        if (event.type === "BOOKMARK") yield event;
        else yield { type: event.type, object: typed<T>(partsOf(event.object, options)), size: 1 };
      }
    } finally {
      watch.close();
    }
  }

  /** Turns a refusal into the error that the client over HTTP makes of it. */
  #answered<T>(subject: Subject, act: () => T): T {
    try {
      if (this.#way.permits?.(subject) === false) throw forbidden(subject);
      return act();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const answer = { status: error.status, headers: {}, text: JSON.stringify(error.toStatus()) };
      throw errorFromAnswer(answer, "", { ...subject, cluster: this.#server.name });
    }
  }

  #lost(code: KubeErrorCode, detail: string, subject: Subject): KubeError {
    return new KubeError(detail, { ...subject, cluster: this.#server.name, code });
  }
}

/** Returns an answer as what its type promises, which a test says by the resource that it reads. */
function typed<T extends KubeObject>(object: object): Stored<T> {
  if (!isStored<T>(object)) throw new Error(`not a stored object: ${JSON.stringify(object)}`);
  return object;
}

function subjectOf(
  verb: string,
  { plural }: { readonly plural: string },
  { namespace, name }: { readonly namespace?: string | undefined; readonly name?: string | undefined },
  subresource?: string,
): Subject {
  return {
    verb,
    resource: subresource === undefined ? plural : `${plural}/${subresource}`,
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { objectName: name }),
  };
}
