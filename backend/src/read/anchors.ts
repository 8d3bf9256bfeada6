import type { Row, Sql } from '../facts/connection.js'
import { register } from '../facts/registers.js'
import { UnstableReadError } from '../graph/errors.js'
import { nativeHash256 } from '../graph/native-hash.js'
import { asBump } from '../graph/write-beef.js'
import { inSlices } from '../graph/yield-to-event-loop.js'
import { headerRange, readHeaders } from '../index/headers.js'
import { registerIn } from '../index/schema.js'
import { headerAt, headerCount } from '../protocol/block-header.js'
import { equalBytes, reversed, toHex } from '../protocol/bytes.js'
import type { PathNode } from '../protocol/merkle-path.js'
import { parseOutpoint } from '../protocol/outpoint.js'
import type { Steps } from '../protocol/steps.js'
import { anchorRoot, NO_HASH, nextAnchor } from '../protocol/topic-anchors.js'
import { blobOf, type Reader } from './reader.js'

/** What a topic admitted of a block, and of all blocks up to it. Hashes are hex in display order. */
export interface Anchor {
  height: number
  /** Of the block. */
  hash: string
  /** Over what was admitted of this block. */
  root: string
  count: number
  /** Over all blocks up to this one, from the topic's first. */
  tac: string
}

/** A proven transaction that a topic admitted. */
export interface AdmittedInBlock {
  txid: string
  /** Its place in the block, the coinbase first. */
  index: number
  merklePath: Uint8Array
}

/**
 * The anchors of `tm_names` (BASM, BRC-136): over genuine mints and other transactions that spend a node, from the block of the genesis on,
 * by the best chain of block headers. So they depend on nothing but the chain, and on what is stored.
 *
 * They are held in memory, some 70 bytes a block, once somebody has asked, and brought up to date by the next question.
 */
export class Anchors {
  private held: Held | undefined
  private commits = -1
  private updating: Promise<void> | undefined

  constructor(private readonly reader: Reader) {}

  /** The anchor of the last block; undefined if the genesis is in no block that is known. */
  async tip(): Promise<Anchor | undefined> {
    await this.update()
    return this.held && anchorAt(this.held, this.held.to)
  }

  /** The anchors of these blocks, as far as there are any. */
  async range({ from, to }: { from: number; to: number }): Promise<Anchor[]> {
    await this.update()
    const { held } = this
    if (held === undefined) return []
    const found: Anchor[] = []
    for (let height = Math.max(from, held.from); height <= Math.min(to, held.to); height++)
      found.push(anchorAt(held, height))
    return found
  }

  /** What was admitted of a block, in its order. */
  admitted(height: number): Promise<AdmittedInBlock[]> {
    return this.reader.acrossSnapshots(() => inSlices(this.admittedIn(height)))
  }

  /** Whether anchors are over a transaction, if they reach its block. */
  isAdmitted(txid: string): boolean {
    return this.reader.answer((sql) => sql.get(IS_ADMITTED, blobOf(txid))) !== undefined
  }

  /** Several questions at once wait for one update. */
  private update(): Promise<void> {
    this.updating ??= this.upToDate().finally(() => {
      this.updating = undefined
    })
    return this.updating
  }

  private async upToDate(): Promise<void> {
    for (let tried = 0; tried < TRIES; tried++) {
      const { commits } = this.reader
      if (this.commits === commits) return
      const next = await inSlices(this.look())
      if (next === undefined || next === this.held) {
        this.held = next
        this.commits = commits
        return
      }
      // Looked at again: something may have been written in between.
      this.held = next
    }
    throw new UnstableReadError(`the anchors changed ${TRIES} times while they were read; try again`)
  }

  /** @returns What is held, if nothing has changed. */
  private *look(): Steps<Held | undefined> {
    const { reader, held } = this
    const about = reader.answer(extent)
    if (about === undefined) return undefined
    const { from, to } = about
    const names = yield* this.committed()
    const known = held?.from === from ? held : undefined
    let next = Math.min(to, known?.to ?? from - 1) + 1
    // Without a tracker, a proof may claim any height.
    for (const height of new Set([...names.keys(), ...(known?.blocks.keys() ?? [])]))
      if (height >= from && height < next && names.get(height) !== known?.blocks.get(height)?.ids)
        next = height
    // A reorganisation replaces the last blocks.
    while (known !== undefined && next > from && !reader.answer((sql) => isBlock(sql, known, next - 1))) {
      next--
      yield
    }
    if (known !== undefined && known.to === to && next > to) return known
    return yield* this.built({ from, to, next, names, known })
  }

  private *built(asked: {
    from: number
    to: number
    next: number
    names: ReadonlyMap<number, string>
    known: Held | undefined
  }): Steps<Held> {
    const { from, to, next, names, known } = asked
    const kept = [...(known?.blocks ?? [])].filter(([height]) => height < next)
    const size = HASH_BYTES * (to - from + 1)
    const held = { from, to, blocks: new Map(kept), hashes: Buffer.alloc(size), tacs: Buffer.alloc(size) }
    held.hashes.set(known?.hashes.subarray(0, HASH_BYTES * (next - from)) ?? [])
    held.tacs.set(known?.tacs.subarray(0, HASH_BYTES * (next - from)) ?? [])
    for (let height = next; height <= to; height += BLOCKS_A_STEP) {
      const count = Math.min(BLOCKS_A_STEP, to + 1 - height)
      const headers = this.reader.answer((sql) => readHeaders(sql, { from: height, count }))
      for (let at = 0; at < headerCount(headers); at++) {
        const ids = names.get(height + at)
        if (ids !== undefined)
          held.blocks.set(height + at, { ids, ...rootOf(yield* this.admittedIn(height + at)) })
        addAnchor(held, height + at, nativeHash256(headerAt(headers, at)))
      }
      yield
    }
    return held
  }

  private *admittedIn(height: number): Steps<AdmittedInBlock[]> {
    const found: AdmittedInBlock[] = []
    for (let tid = 0; ; ) {
      const rows = this.reader.answer((sql) => sql.all(ADMITTED, height, tid, PROOFS_A_STEP))
      for (const row of rows) {
        // Of several proofs of a transaction in one block, one is enough.
        if (row.tid !== tid) found.push(inBlock(row))
        tid = row.tid
      }
      if (rows.length < PROOFS_A_STEP) return found.sort((one, other) => one.index - other.index)
      yield
    }
  }

  /** The transactions that anchors are over, by height: their ids, which tell whether they have changed. */
  private *committed(): Steps<Map<number, string>> {
    const found = new Map<number, string>()
    let [tid, vout] = [0, -1]
    for (;;) {
      const rows = this.reader.answer((sql) => sql.all(COMMITTED, tid, vout, NODES_A_STEP))
      for (const { own, id } of rows)
        if (own !== null) found.set(own, `${found.has(own) ? `${found.get(own)} ` : ''}${id}`)
      const last = rows.at(-1)
      if (last === undefined || rows.length < NODES_A_STEP) return found
      ;[tid, vout] = [last.tid, last.vout]
      yield
    }
  }
}

const TRIES = 20
const HASH_BYTES = 32
/** Each step takes a few milliseconds. */
const BLOCKS_A_STEP = 500
const NODES_A_STEP = 500
const PROOFS_A_STEP = 50

interface Held {
  /** The heights of the first and the last block. */
  from: number
  to: number
  /** Those from which something was admitted; `ids` name that. */
  blocks: Map<number, { ids: string; root: Uint8Array; count: number }>
  /** 32 bytes for each block. */
  hashes: Buffer
  tacs: Buffer
}

function anchorAt({ from, blocks, hashes, tacs }: Held, height: number): Anchor {
  const at = HASH_BYTES * (height - from)
  const { root = NO_HASH, count = 0 } = blocks.get(height) ?? {}
  const shown = (bytes: Uint8Array): string => toHex(reversed(bytes))
  const [hash, tac] = [hashes, tacs].map((all) => shown(all.subarray(at, at + HASH_BYTES)))
  return { height, hash: hash ?? '', root: shown(root), count, tac: tac ?? '' }
}

function addAnchor({ from, blocks, hashes, tacs }: Held, height: number, hash: Uint8Array): void {
  const at = HASH_BYTES * (height - from)
  const before = height === from ? NO_HASH : tacs.subarray(at - HASH_BYTES, at)
  hashes.set(hash, at)
  tacs.set(nextAnchor(before, { hash, root: blocks.get(height)?.root ?? NO_HASH }, nativeHash256), at)
}

function isBlock(sql: Sql, { from, to, hashes }: Held, height: number): boolean {
  if (height > to) return false
  const header = readHeaders(sql, { from: height, count: 1 })
  const at = HASH_BYTES * (height - from)
  return header.length > 0 && equalBytes(nativeHash256(header), hashes.subarray(at, at + HASH_BYTES))
}

/** The blocks that anchors are of; undefined without the genesis in one, or without all headers from that on. */
function extent(sql: Sql): { from: number; to: number } | undefined {
  const genesis = registerIn(sql, register.setting('genesis'))
  if (genesis === undefined) return undefined
  const from = sql.get(PROVEN, blobOf(parseOutpoint(String(genesis)).txid))?.own ?? undefined
  const headers = headerRange(sql)
  return from === undefined || headers === undefined || headers.from > from || headers.to < from
    ? undefined
    : { from, to: headers.to }
}

function inBlock({ txid, path }: Row): AdmittedInBlock {
  const [leaves = new Map<number, PathNode>()] = asBump(path as Uint8Array).levels
  // A stored path is about one transaction.
  const [index = 0] = [...leaves].find(([, { isTxid }]) => isTxid) ?? []
  return { txid: toHex(txid), index, merklePath: path }
}

function rootOf(admitted: readonly AdmittedInBlock[]): { root: Uint8Array; count: number } {
  const txids = admitted.map(({ txid }) => reversed(blobOf(txid)))
  return { root: anchorRoot(txids, nativeHash256), count: admitted.length }
}

const PROVEN = 'select own from tx where txid = ? and active = 1'
/** What spends nodes, by the place of the node. */
const COMMITTED = `select node.tid, node.vout, tx.id, tx.own from node cross join spend on pid = node.tid and spend.vout = node.vout
    cross join tx on tx.id = sid
  where (node.tid, node.vout) > (?, ?) and node.active = 1 and tx.active = 1 order by node.tid, node.vout limit ?`
const SPENDS_NODE = `exists (select 1 from spend cross join node on node.tid = pid and node.vout = spend.vout
  where sid = tx.id and node.active = 1)`
const ADMITTED = `select tid, tx.txid, log.body as path from proof cross join tx on tx.id = proof.tid
    cross join log.log as log on log.seq = proof.seq
  where proof.height = ? and tid > ? and ok = 1 and own = proof.height and active = 1 and ${SPENDS_NODE}
  order by tid limit ?`
/** Of those that anchors are over. */
const IS_ADMITTED = `select 1 from tx where txid = ? and own is not null and active = 1 and ${SPENDS_NODE}`
