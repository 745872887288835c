// Asks a running weir with @grpc/grpc-js: every method, deadlines and cancellations. A line is
// printed for each part that got the answers it should. With WEIR_GRPC_CA it asks over TLS, with
// WEIR_GRPC_CERT and WEIR_GRPC_KEY as the client of a certificate.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import grpc from "@grpc/grpc-js";

const { WEIR_GRPC_PORT, WEIR_GRPC_CA, WEIR_GRPC_CERT, WEIR_GRPC_KEY } = process.env;
const read = (path) => (path ? readFileSync(path) : null);
const client = new grpc.Client(`localhost:${WEIR_GRPC_PORT}`, WEIR_GRPC_CA
  ? grpc.credentials.createSsl(read(WEIR_GRPC_CA), read(WEIR_GRPC_KEY), read(WEIR_GRPC_CERT))
  : grpc.credentials.createInsecure());
const same = (bytes) => bytes;
const HEALTH = "/grpc.health.v1.Health/";
const RLS = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

function text(field, value) {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([(field << 3) | 2, bytes.length]), bytes]);
}

function unary(path, message, options = {}) {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(path, same, same, message, new grpc.Metadata(), options,
      (error, answer) => (error ? reject(error) : resolve(answer)));
  });
}

async function rateLimit() {
  const entry = Buffer.concat([text(1, "user"), text(2, "node")]);
  const question = Buffer.concat([text(1, "shop"), text(2, text(1, entry))]);
  const codes = [];
  for (let i = 0; i < 4; ++i) {
    codes.push((await unary(RLS, question, { deadline: Date.now() + 60000 }))[1]);
  }
  assert.deepEqual(codes, [1, 1, 1, 2]);  // overall_code is the first field
  await assert.rejects(unary(RLS, Buffer.alloc(0)), { code: grpc.status.UNKNOWN });
  const many = await Promise.all(Array.from({ length: 500 }, () => unary(HEALTH + "Check",
    Buffer.alloc(0))));
  assert.ok(many.every((answer) => answer.equals(Buffer.from([8, 1]))));
}

async function errors() {
  await assert.rejects(unary("/no.Such/Method", Buffer.alloc(0)),
    { code: grpc.status.UNIMPLEMENTED, details: "unknown method /no.Such/Method" });
  await assert.rejects(unary(HEALTH + "Check", text(1, "nobody")), { code: grpc.status.NOT_FOUND });
  await assert.rejects(unary(HEALTH + "Check", Buffer.alloc(2 << 20)),
    { code: grpc.status.RESOURCE_EXHAUSTED });
}

function watch() {
  return new Promise((resolve, reject) => {
    const call = client.makeServerStreamRequest(HEALTH + "Watch", same, same, Buffer.alloc(0));
    call.on("data", (answer) => {
      assert.deepEqual([...answer], [8, 1]);
      call.cancel();
    });
    call.on("error", (error) => (error.code === grpc.status.CANCELLED ? resolve() : reject(error)));
  });
}

async function deadline() {
  const call = client.makeServerStreamRequest(HEALTH + "Watch", same, same, Buffer.alloc(0),
    new grpc.Metadata(), { deadline: Date.now() + 300 });
  call.on("data", () => {});
  const error = await new Promise((resolve) => call.on("error", resolve));
  assert.equal(error.code, grpc.status.DEADLINE_EXCEEDED);
}

function reflection() {
  return new Promise((resolve, reject) => {
    const call = client.makeBidiStreamRequest(
      "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", same, same);
    call.on("data", (answer) => {
      assert.ok(answer.includes("envoy.service.ratelimit.v3.RateLimitService"));
      call.end();
    });
    call.on("error", reject);
    call.on("end", resolve);
    call.write(text(7, ""));
  });
}

for (const part of [rateLimit, errors, watch, deadline, reflection]) {
  await part();
  console.log(`ok ${part.name}`);
}
client.close();
