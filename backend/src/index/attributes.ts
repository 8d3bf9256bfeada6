import type { Sql } from '../facts/connection.js'
import { dependency } from '../graph/dependencies.js'
import { type Attribute, attribute, mapAttributes } from '../graph/listings.js'
import { decodeMap } from '../graph/map-coder.js'
import { EMPTY_MAP, mergeMap } from '../graph/map-merge.js'
import { BY_RANK } from './active.js'
import type { Agenda, Journal } from './journal.js'
import { mapAt } from './map-snapshots.js'
import { type NewOutput, type OutputRow, outpointIn, outputWith } from './outputs.js'
import { Runs } from './runs.js'
import type { Transactions } from './transactions.js'

/** The place of an ordinal in lists, by the outpoint of its first output. */
interface ListPlace {
  tkey: number
  vout: number
}

/**
 * The attributes by which ordinals are found, at their last active output. An ordinal without a number is found by its owner
 * alone; in place of its lineage it has the negative id of that output.
 */
export class Attributes {
  private readonly runs: Runs

  constructor(
    private readonly sql: Sql,
    private readonly tables: { transactions: Transactions; journal: Journal; agenda: Agenda },
  ) {
    this.runs = new Runs(sql)
  }

  index(): void {
    const { lineages, unnumbered } = this.tables.agenda
    for (const lin of lineages) this.indexLineage(lin)
    for (const oid of unnumbered) this.indexOutput(oid)
    lineages.clear()
    unnumbered.clear()
  }

  /** Replaces the owner of an ordinal that moved and did nothing else. */
  setOwner(lin: number, before: Uint8Array | null, after: Uint8Array | null): void {
    if (before && after && Buffer.compare(before, after) === 0) return
    const [old, now] = [before && ownerAttribute(before), after && ownerAttribute(after)]
    const isReplaced =
      old &&
      now &&
      this.sql.run(
        'update or replace found set attribute = ? where lin = ? and attribute = ?',
        ...[keyOf(now), lin, keyOf(old)],
      )
    if (isReplaced) return
    if (old) this.sql.run('delete from found where lin = ? and attribute = ?', lin, keyOf(old))
    if (now) this.add(lin, this.placeOf(lin), [now])
  }

  /** Adds the attributes of an unspent output that begins a lineage or a run: they follow from that output alone. */
  addFirst(row: NewOutput): void {
    const isInscribed = row.origin !== null
    const attributes = [
      ...(row.owner ? [ownerAttribute(row.owner)] : []),
      ...(isInscribed && row.ctype !== null ? [attribute.contentType(row.ctype.toString('utf8'))] : []),
      ...(row.latestparent === row.oid && row.parent ? [attribute.parent(outpointIn(row.parent))] : []),
      ...(row.lastmap === row.oid && row.map ? mapAttributes(mergeMap(EMPTY_MAP, decodeMap(row.map))) : []),
    ]
    this.add(row.lin ?? -row.oid, row, attributes)
  }

  private indexLineage(lin: number): void {
    const tip = this.tipOf(lin)
    const wanted = tip === undefined || tip.carrier === 1 ? [] : this.attributesOf(tip)
    this.write(lin, lin, wanted)
  }

  /** The last active output. There are two only where a non-mint spent a node, too: then the better-ranked one. */
  private tipOf(lin: number): OutputRow | undefined {
    const found = this.sql.get(
      `select oid from out join tx on tx.id = tid where lin = ?1 and out.active = 1 and step =
          (select max(step) from out where lin = ?1 and active = 1)
        order by ${BY_RANK} limit 1`,
      lin,
    )
    return found && outputWith(this.sql, found.oid)
  }

  private attributesOf(tip: OutputRow): Attribute[] {
    const { sql } = this
    const content = sql.get('select ctype from out where oid = ?', tip.latest)
    const parent: Buffer | undefined =
      tip.latestparent === null
        ? undefined
        : sql.get('select parent from out where oid = ?', tip.latestparent)?.parent
    return [
      ...this.ownerOf(tip),
      ...(content ? [attribute.contentType(content.ctype.toString('utf8'))] : []),
      ...(parent ? [attribute.parent(outpointIn(parent))] : []),
      ...(tip.lastmap === null ? [] : mapAttributes(mapAt(sql, tip))),
    ]
  }

  /** A spent ordinal whose new place is unknown has no owner. */
  private ownerOf({ tid, vout, owner }: OutputRow): Attribute[] {
    if (owner === null || this.tables.transactions.hasActiveSpender(tid, vout)) return []
    return [ownerAttribute(owner)]
  }

  private indexOutput(oid: number): void {
    const row = outputWith(this.sql, oid)
    const isShown = row !== undefined && row.lin === null && row.active === 1 && row.carrier === 0
    const head = isShown ? this.runs.headOf(row) : oid
    this.write(-oid, head, isShown ? this.ownerOf(row) : [])
  }

  /** Moves the rows of a run that became part of another one within lists. @param before The first output, and what it is now. */
  moveRun(before: number, after: number, run: number): void {
    if (before === after) return
    const { sql } = this
    const [old, now] = [this.placeOf(before), this.placeOf(after)]
    const rows = sql.all(
      'select attribute, lin from found where lin < 0 and okey = ? and vout = ?',
      ...[old.tkey, old.vout],
    )
    for (const { attribute, lin } of rows) {
      if (sql.get('select run from out where oid = ?', -lin)?.run !== run) continue
      sql.run(
        'update found set okey = ?, vout = ? where attribute = ? and okey = ? and vout = ? and lin = ?',
        ...[now.tkey, now.vout, attribute, old.tkey, old.vout, lin],
      )
    }
  }

  /** @param first The output whose outpoint gives the place in lists. */
  private write(lin: number, first: number, attributes: Attribute[]): void {
    const isNew = Math.abs(lin) > this.tables.agenda.lastEarlierOutput
    if (isNew && attributes.length === 0) return
    const wanted = new Map(attributes.map((each) => [each.hash, each]))
    for (const { attribute: key } of this.sql.all('select attribute from found where lin = ?', lin)) {
      const hash = key.toString('hex')
      if (wanted.delete(hash)) continue
      // Treats every lost one as a parent, as only its hash is stored: answers list what is found by a parent.
      this.tables.journal.change(dependency.children({ hash }))
      this.sql.run('delete from found where lin = ? and attribute = ?', lin, key)
    }
    if (wanted.size > 0) this.add(lin, this.placeOf(first), [...wanted.values()])
  }

  private placeOf(oid: number): ListPlace {
    const row = this.sql.get('select tkey, vout from out where oid = ?', oid)
    if (row === undefined) throw new Error(`the index has no output ${oid}`)
    return { tkey: row.tkey, vout: row.vout }
  }

  private add(lin: number, { tkey, vout }: ListPlace, wanted: readonly Attribute[]): void {
    for (const each of wanted)
      if (each.kind === 'parent') this.tables.journal.change(dependency.children(each))
    const rows = wanted.map((each) => [keyOf(each), tkey, vout, lin])
    this.sql.insertAll('insert or ignore into found (attribute, okey, vout, lin)', rows)
  }
}

function keyOf({ hash }: Attribute): Buffer {
  return Buffer.from(hash, 'hex')
}

function ownerAttribute(owner: Uint8Array): Attribute {
  return attribute.owner(Buffer.from(owner).toString('hex'))
}
