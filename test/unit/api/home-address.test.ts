import { describe, expect, test } from "vitest";
import { homeAddress, isLocalAddress } from "../../../src/api/home-address.ts";

describe("homeAddress", () => {
  test.each([
    ["https://10.0.0.1:6443", { host: "10.0.0.1", port: "6443" }],
    ["https://host.example.com", { host: "host.example.com", port: "443" }],
    ["https://host.example.com/", { host: "host.example.com", port: "443" }],
    ["https://[fd00::1]:6443", { host: "fd00::1", port: "6443" }],
  ])("parses %s", (server, address) => {
    expect(homeAddress(server)).toEqual(address);
  });

  test.each([
    "10.0.0.1:6443",
    "http://10.0.0.1",
    "https://gateway/k8s/clusters/one",
    "https://user@host",
    "https://host/?token=x",
    "https://host/#x",
    "https://",
    "",
  ])("refuses %j", (server) => {
    expect(homeAddress(server)).toBeUndefined();
  });

  test.each([
    ["https://127.0.0.1:6443", true],
    ["https://localhost", true],
    ["https://[::1]:6443", true],
    ["https://kubernetes.default.svc", true],
    ["https://kubernetes.default.svc.cluster.local", true],
    ["https://10.0.0.1", false],
    ["https://localhost.example.com", false],
  ])("reports whether %s is local: %j", (server, local) => {
    const address = homeAddress(server);
    expect(address !== undefined && isLocalAddress(address)).toBe(local);
  });
});
