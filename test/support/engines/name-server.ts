import { createSocket, type RemoteInfo } from "node:dgram";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { endpointSlices, services } from "../../../src/kube/resources.ts";

const HEADER_BYTES = 12;
const TYPE_A = 1;
const NXDOMAIN = 3;
/** Offset of the question's name, as a pointer to it. */
const NAME_POINTER = 0xc000 + HEADER_BYTES;
const TTL_SECONDS = 5;

interface Question {
  readonly name: string;
  readonly type: number;
  /** Offset of the first byte after the question. */
  readonly end: number;
}

/** The one question of a query. */
function questionOf(query: Buffer): Question {
  const labels: string[] = [];
  let offset = HEADER_BYTES;
  for (let length = query.readUInt8(offset); length > 0; length = query.readUInt8(offset)) {
    labels.push(query.toString("latin1", offset + 1, offset + 1 + length));
    offset += 1 + length;
  }
  return { name: labels.join("."), type: query.readUInt16BE(offset + 1), end: offset + 5 };
}

/** The answer to a query: IPv4 addresses; undefined when nothing has that name. */
function answerTo(query: Buffer, { type, end }: Question, addresses: readonly string[] | undefined): Buffer {
  const given = type === TYPE_A ? (addresses ?? []) : [];
  const header = Buffer.alloc(HEADER_BYTES);
  query.copy(header, 0, 0, 2);
  // An authoritative response.
  header.writeUInt16BE(0x8580 | (addresses === undefined ? NXDOMAIN : 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(given.length, 6);
  const records = given.map((address) => {
    const record = Buffer.alloc(16);
    record.writeUInt16BE(NAME_POINTER, 0);
    record.writeUInt16BE(TYPE_A, 2);
    record.writeUInt16BE(1, 4);
    record.writeUInt32BE(TTL_SECONDS, 6);
    record.writeUInt16BE(4, 10);
    record.set(address.split(".").map(Number), 12);
    return record;
  });
  return Buffer.concat([header, query.subarray(HEADER_BYTES, end), ...records]);
}

/** Addresses behind a name of a Service in a cluster; undefined when it has none. */
async function addressesOf(client: ClusterClient, asked: string): Promise<readonly string[] | undefined> {
  const [, name, namespace] = /^([^.]+)\.([^.]+)\.svc\.cluster\.local$/.exec(asked) ?? [];
  if (name === undefined || namespace === undefined) return undefined;
  const service = await client.find(services, { namespace, name });
  const clusterIP = service?.spec?.clusterIP;
  if (service === undefined || clusterIP === undefined) return undefined;
  if (clusterIP !== "None") return [clusterIP];
  const { items } = await client.list(endpointSlices, {
    namespace,
    labelSelector: `kubernetes.io/service-name=${name}`,
  });
  const ready = items
    .flatMap(({ endpoints }) => endpoints ?? [])
    .filter(({ conditions }) => conditions?.ready !== false);
  return ready.length === 0 ? undefined : ready.flatMap(({ addresses }) => addresses);
}

/**
 * Answers for the names of a cluster's Services at port 53 of an address, as a cluster's DNS would: real nodes have none.
 * Returns how to end it.
 */
export async function startNameServer(client: ClusterClient, address: string): Promise<() => Promise<void>> {
  const socket = createSocket("udp4");
  const answer = async (query: Buffer, { port, address: asker }: RemoteInfo): Promise<void> => {
    const question = questionOf(query);
    const answered = answerTo(query, question, await addressesOf(client, question.name));
    socket.send(answered, port, asker);
  };
  // Clients retry without an answer, so unreadable and late queries get none.
  socket.on("message", (query, from) => void answer(query, from).catch(() => undefined));
  await new Promise<void>((resolve, reject) => {
    socket.once("error", (error) =>
      reject(new Error(`No name server can answer at port 53 of ${address}`, { cause: error })),
    );
    socket.bind(53, address, resolve);
  });
  return () => new Promise((resolve) => socket.close(() => resolve()));
}

/** Returns a container's /etc/resolv.conf with this server. */
export function resolvConf(namespace: string, address: string): string {
  const search = [`${namespace}.svc.cluster.local`, "svc.cluster.local", "cluster.local"];
  return `search ${search.join(" ")}\nnameserver ${address}\noptions ndots:5\n`;
}
