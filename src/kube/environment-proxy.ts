import { BlockList, isIP } from "node:net";
import { badCredentials } from "./credentials.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Reports whether the text is a proxy URL of a supported scheme. */
export function isProxyUrl(text: string): boolean {
  return /^(https?|socks5h?):\/\/[^/]/.test(text) && URL.canParse(text);
}

/**
 * Returns the proxy that the environment names for a server, by the rules of kubectl (golang.org/x/net/http/httpproxy): none
 * for loopback, or for a host in NO_PROXY. Throws KubeError `BadCredentials`.
 */
export function environmentProxy(server: string, env: Environment): string | undefined {
  const url = new URL(server);
  const name = url.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY";
  const value = variable(env, name);
  if (value === undefined || isDirect(url, variable(env, "NO_PROXY") ?? "")) return undefined;
  const proxy = value.includes("://") ? value : `http://${value}`;
  if (isProxyUrl(proxy)) return proxy;
  // The message omits the value, which may hold a password.
  throw badCredentials("not a proxy; write a URL with http, https or socks5, or unset it", name);
}

function variable(env: Environment, name: string): string | undefined {
  return [env[name], env[name.toLowerCase()]].find((value) => value !== undefined && value !== "");
}

const LOOPBACK = ["127.0.0.0/8", "::1"];

function isDirect({ hostname, port, protocol }: URL, noProxy: string): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
  if (host === "localhost") return true;
  const entries = noProxy.split(",").map((entry) => entry.trim().toLowerCase());
  const portNumber = port === "" ? (protocol === "https:" ? "443" : "80") : port;
  return [...LOOPBACK, ...entries].some((entry) => covers(entry, host, portNumber));
}

/** Reports whether a NO_PROXY entry covers the host: `*`, a subnet, an address or a domain, the last two with optional port. */
function covers(entry: string, host: string, port: string): boolean {
  if (entry === "") return false;
  if (entry === "*") return true;
  const [subnet = "", bits] = entry.split("/");
  if (bits !== undefined) return isWithin(host, subnet, bits);
  const [, bracketed, plain = entry, onlyPort = port] = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(entry) ?? [];
  const named = bracketed ?? plain;
  if (onlyPort !== port) return false;
  if (isIP(named) !== 0) return isWithin(host, named, isIP(named) === 6 ? "128" : "32");
  // A domain covers its subdomains; with a leading dot, only these.
  const subdomains = named.startsWith("*.") ? named.slice(1) : named;
  return subdomains.startsWith(".") ? host.endsWith(subdomains) : `.${host}`.endsWith(`.${subdomains}`);
}

function isWithin(host: string, subnet: string, bits: string): boolean {
  const longest = { 0: -1, 4: 32, 6: 128 }[isIP(subnet)] ?? -1;
  if (isIP(host) === 0 || !/^\d+$/.test(bits) || Number(bits) > longest) return false;
  const list = new BlockList();
  list.addSubnet(subnet, Number(bits), familyOf(subnet));
  return list.check(host, familyOf(host));
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 6 ? "ipv6" : "ipv4";
}
