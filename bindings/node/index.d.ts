/** A string, or the bytes of one: both are the same key. 1 to 65535 bytes. */
export type Key = string | Uint8Array;

export type Outcome = 'allowed' | 'denied' | 'refused';

/** What a decision rests on. */
export type Basis = 'store' | 'sketch' | 'open' | 'closed' | 'lease';

/** Why a check was refused; nothing was charged. */
export type Problem =
  | 'none' | 'cost_above_burst' | 'cost_too_large' | 'key_empty' | 'key_too_long' | 'key_has_nul'
  | 'now_too_far' | 'max_wait_too_short' | 'wrong_quota' | 'lease_out_of_range' | 'no_records';

/** What a charge does when it does not fit. */
export type Mode = 'admit' | 'count-always' | 'up-to' | 'dry-run';

export class Decision {
  private constructor();
  readonly allowed: boolean;
  readonly outcome: Outcome;
  readonly basis: Basis;
  readonly problem: Problem;
  /** The most units at once on a fresh key. */
  readonly limit: number;
  readonly remaining: number;
  /** Units taken by this call. */
  readonly charged: number;
  /** Denied: waiting this long, alone, is enough. */
  readonly retryAfterMs: number;
  /** Until the key is as good as new. */
  readonly resetAfterMs: number;
  /** How long to wait before starting; 0 unless the quota is a queue. */
  readonly startAfterMs: number;
}

/** What is held, for release and renew. */
export class Hold {
  private constructor();
  /** Larger than that of any hold of its key before. */
  readonly fence: bigint;
}

export interface StoreOptions {
  /** All of it, for as long as the store lives. 64 MiB. */
  budgetBytes?: number;
  /** 1000. */
  maxSkewMs?: number;
  /** Shifts per-key windows; the same on every node of a fleet. */
  fleetSecret?: bigint | number;
  /** What happens to keys that find the store full. 'sketch'. */
  overflow?: 'sketch' | 'deny' | 'allow';
  /** Whether a NUL character in a key is refused ('text'). */
  keys?: 'text' | 'binary';
  hugePages?: boolean;
  /** Of the budget, for sliding logs, sliced windows, holds and reservations. */
  recordPercent?: number;
  /** Of the rest, for windows. */
  widePercent?: number;
  /** Of the budget, for the sketch; at most 50. */
  sketchPercent?: number;
  /** Whether threads that contend for one key take units of it ahead. true. */
  hotKeys?: boolean;
}

/** Memory of a fixed size for several limiters. */
export class Store {
  constructor(options?: StoreOptions);
}

export interface OwnOptions {
  /** Where a key is counted before it comes near its limit. 'exact'. */
  precision?: 'exact' | 'sketch';
  /** How many of the most frequent keys to keep track of, at most 4096. 0: none. */
  topKeys?: number;
  /** One decision in this many is noted: a power of two. 64. */
  topKeysSample?: number;
}

export type LimiterOptions = OwnOptions & (({store: Store}) | ({store?: undefined} & StoreOptions));

export interface Settlement {
  /** 'before': this or another call had settled it. 'gone': unknown here, or ended by itself. */
  outcome: 'settled' | 'before' | 'gone' | 'refused';
  /** What it was settled with: now, or when it already was. */
  actual: number;
  givenBack: number;
  charged: number;
  decision: Decision;
}

export interface TopKey {
  /** The key, or its first 64 bytes, as text. */
  key: string;
  bytes: Uint8Array;
  cut: boolean;
  /** Of what was noted, times the sample, between count - error and count was this key's. */
  count: number;
  denied: number;
  error: number;
}

export interface Stats {
  decisions: number;
  denials: number;
  refusals: number;
  /** Decisions that found no slot: the budget is too small for the live keys. */
  overflow: number;
  reclaims: number;
  lostRaces: number;
  slots: number;
  liveSlots: number;
  budgetBytes: number;
  /** 1 if the system granted them. */
  hugePages: number;
  records: number;
  /** Keys that left the sketch for a slot. */
  promotions: number;
  leases: number;
  leasesReturned: number;
  leaseUnitsReturned: number;
}

/** A quota such as '100/min burst 20', counted by key. Wrong calls throw. */
export class Limiter {
  constructor(quota: string, options?: LimiterOptions);
  /** Takes `cost` units (1) or none; 0 only looks. */
  check(key: Key, cost?: number): Decision;
  /** check(key, cost).allowed, without the object. */
  allows(key: Key, cost?: number): boolean;
  /** A decision for each of at most 65536 keys, in order. */
  checkMany(keys: Iterable<Key>, cost?: number): Decision[];
  charge(key: Key, cost?: number, mode?: Mode): Decision & {receipt: Uint8Array};
  /** Takes what fits, perhaps nothing: `charged` says how much. */
  takeUpTo(key: Key, most: number): Decision & {receipt: Uint8Array};
  /** The units given back, as far as they were still owed. A receipt counts once. */
  giveBack(receipt: Uint8Array): number;
  /** Starts a key anew, whatever it owes; false: there was nothing to forget. */
  reset(key: string | Uint8Array): boolean;
  /** For quotas such as 'concurrency 20 lease 30s'. */
  acquire(key: Key, options?: {cost?: number; leaseMs?: number}): Decision & {hold: Hold | null};
  /** False: it had ended already. */
  release(hold: Hold): boolean;
  /** False: it has ended, and may be somebody else's. */
  renew(hold: Hold, options?: {leaseMs?: number}): boolean;
  /** For costs known only afterwards; needs a recordPercent. */
  reserve(key: Key, estimate: number,
    options?: {lastsMs?: number}): Decision & {reservation: bigint | null};
  settle(reservation: bigint, actual: number): Settlement;
  topKeys(most?: number): TopKey[];
  /** Changes the quota; what keys owe is carried over. */
  update(quota: string): void;
  /** Of the store that the limiter is on. */
  stats(): Stats;
}

/** Of libweir. */
export const version: string;
