import fc from "fast-check";
import forge from "node-forge";
import { describe, expect, test } from "vitest";
import { der, objectIdentifier, readAll, sequence, TAG, time } from "../../../src/certificates/der.ts";

const arc = fc.nat(2 ** 31 - 1);
const identifier = fc
  .tuple(fc.nat(2), fc.nat(39), fc.array(arc, { minLength: 1, maxLength: 8 }))
  .map(([first, second, others]) => [first, second, ...others].join("."));

describe("DER", () => {
  test("has object identifiers as another implementation reads them", () => {
    fc.assert(
      fc.property(identifier, (text) => {
        const [value] = readAll(objectIdentifier(text));
        const read = forge.asn1.derToOid(forge.util.createBuffer(value?.content.toString("latin1") ?? ""));
        expect(read).toBe(text);
      }),
    );
  });

  test.each([0, 1, 127, 128, 255, 256, 65_535, 65_536])("is read as it was written, with %i bytes", (length) => {
    const content = Buffer.alloc(length, "x");
    const written = sequence(der(TAG.octetString, content), der(TAG.utf8String));
    const [whole, ...others] = readAll(written);
    expect(others).toEqual([]);
    expect(whole?.bytes.equals(written)).toBe(true);
    const [bytes, text] = readAll(whole?.content ?? Buffer.alloc(0));
    expect([bytes?.tag, bytes?.content.equals(content), text?.content.length]).toEqual([TAG.octetString, true, 0]);
    const { value } = forge.asn1.fromDer(written.toString("latin1"));
    expect(value).toHaveLength(2);
  });

  test.each([
    ["an end within a value", "0403ffff"],
    ["no length", "04"],
    ["a length that is cut off", "0482ff"],
    ["a length that is not in the shortest form", `048101ff`],
    ["a length with zeros before it", `048200${"80"}${"ff".repeat(128)}`],
    ["a length without an end (BER)", "3080040000"],
  ])("is not read with %s", (_name, hex) => {
    expect(() => readAll(Buffer.from(hex, "hex"))).toThrow();
  });

  test.each([
    ["2049-12-31T23:59:59.999Z", TAG.utcTime, "491231235959Z"],
    ["2050-01-01T00:00:00.000Z", TAG.generalizedTime, "20500101000000Z"],
  ])("has the time %s in the form of RFC 5280", (date, tag, text) => {
    expect(time(new Date(date))).toEqual(der(tag, Buffer.from(text)));
  });
});
