import type { Sql } from '../facts/connection.js'
import { WHOLE_TRANSACTION } from '../graph/ancestor-queue.js'
import { dependency } from '../graph/dependencies.js'
import { holdsOrdinal, predecessorsIn } from '../graph/transaction-records.js'
import type { Predecessor } from '../protocol/ordinal-flow.js'
import { isCoinbase, outputOf, type TransactionOutput } from '../protocol/transaction.js'
import type { Attributes } from './attributes.js'
import type { Agenda, Journal } from './journal.js'
import { afterMap, deleteSnapshot, writeSnapshot } from './map-snapshots.js'
import {
  type Contents,
  claimsBehind,
  claimsOn,
  contentsOf,
  insertOutput,
  type NewOutput,
  type OutputRow,
  outpointKey,
  outputAt,
  outputsInRun,
  outputWith,
  PLACE,
  type Place,
  receiversOf,
  txidKey,
  UNPLACED,
} from './outputs.js'
import type { Registers } from './registers.js'
import { Runs } from './runs.js'
import type { Input, ParsedTransaction, Transactions } from './transactions.js'

/** How an output is linked to the coin that it received. */
export type Link = Pick<OutputRow, 'ptid' | 'pvout' | 'carrier' | 'unresolved' | 'recency'>

const BRANCH =
  'select 1 as one from out where lin = ? and step >= ? and active = 1 and oid not in (?, ?) limit 1'
const SET_PLACE = `update out set ${PLACE.map((column) => `${column} = ?`)}, run = ? where oid = ?`

/**
 * Lineages: each output has a number in the unbroken run of 1-sat coins that leads to it (BRC-159). The number follows from the
 * coin that it received, active or not, so a lineage is a tree of which at most one branch is active. While that coin is unknown,
 * the output has no number; it and all later ones get theirs when the coin comes.
 */
export class Lineages {
  /** The last id given to an output. Setting it takes ids back. */
  lastId: number
  private readonly runs: Runs

  constructor(
    private readonly sql: Sql,
    private readonly tables: {
      transactions: Transactions
      attributes: Attributes
      registers: Registers
      journal: Journal
      agenda: Agenda
    },
  ) {
    this.runs = new Runs(sql)
    this.lastId = sql.get('select max(oid) as oid from out')?.oid ?? 0
  }

  /**
   * Writes a new output.
   *
   * @param output.coin The row of the coin that it received.
   * @param output.isLast Whether no stored transaction spends it.
   */
  add(
    { view }: ParsedTransaction,
    output: Link & {
      tid: number
      vout: number
      output: TransactionOutput
      active: number
      coin: OutputRow | undefined
      isLast: boolean
    },
  ): OutputRow {
    const { tid, vout, ptid, unresolved, coin, isLast, output: said } = output
    const contents = this.contentsOf(vout, said, view)
    const { parent, mlen } = contents
    const oid = ++this.lastId
    const content = contents.sha === null ? 0 : 1
    const pok = parent !== null && this.doesClaimCount({ tid, parent }) ? 1 : 0
    const place = this.placeOf({ oid, tid, vout, ptid, unresolved, content, parent, pok, mlen }, coin)
    // Written out: merging objects makes a rebuild a fifth slower.
    const row: NewOutput = {
      oid,
      tid,
      vout,
      ptid,
      pvout: output.pvout,
      sats: said.satoshis,
      carrier: output.carrier,
      unresolved,
      active: output.active,
      run: null,
      lin: place.lin,
      step: place.step,
      origin: place.origin,
      latest: place.latest,
      latestparent: place.latestparent,
      lastmap: place.lastmap,
      mprev: place.mprev,
      snap: place.snap,
      since: place.since,
      content,
      ...contents,
      pok,
      recency: output.recency,
      tkey: txidKey(Buffer.from(view.txid, 'hex')),
    }
    insertOutput(this.sql, row)
    if (row.snap === row.oid && row.map)
      writeSnapshot(this.sql, { oid: row.oid, before: mapBefore(row, coin), map: row.map })
    if (row.lin === null) {
      if (coin === undefined) this.addHole(row)
      else this.join(coin, row)
    }
    this.noteAdded(row, coin, isLast)
    if (!isLast) {
      for (const receiver of receiversOf(this.sql, row)) this.link(receiver.oid)
      for (const claim of claimsBehind(this.sql, row)) this.judgeClaim(claim.oid)
    }
    return row
  }

  /** Links an output to another coin than before, or to one that has a number now. */
  relink(oid: number, link: Link): void {
    const { ptid, pvout, carrier, unresolved, recency } = link
    // Claims of its transaction may have changed since it was read.
    const before = this.get(oid)
    this.sql.run(
      'update out set ptid = ?, pvout = ?, carrier = ?, unresolved = ?, recency = ? where oid = ?',
      ...[ptid, pvout, carrier, unresolved, recency, oid],
    )
    if (before.ptid !== null && ptid === null) this.release(before.ptid, before.pvout ?? 0)
    const row = this.link(oid)
    if (carrier === before.carrier) return
    this.noteMoved(row, row)
    const txid = this.tables.transactions.txidOf(row.tid)
    for (const claim of [...claimsBehind(this.sql, row), ...claimsOn(this.sql, outpointKey(txid, row.vout))])
      this.judgeClaim(claim.oid)
  }

  /**
   * The row of a coin that an output received. Writes carriers in front of an ordinal, as far back as their transactions are known.
   */
  coinAt(tid: number, vout: number): OutputRow | undefined {
    const { transactions } = this.tables
    const behind: Parameters<Lineages['add']>[] = []
    let coin = outputAt(this.sql, tid, vout)
    for (
      let at: Pick<Input, 'pid' | 'vout' | 'isKnown'> | undefined = { pid: tid, vout, isKnown: true };
      coin === undefined && at?.isKnown;
    ) {
      const parsed = transactions.parsedOf(at.pid)
      const { view } = parsed
      const output = outputOf(view, at.vout)
      // An output with content but no row was refused: where the ordinal starts is unknown.
      if (output?.satoshis !== 1 || holdsOrdinal(output)) break
      const inputs: Input[] = isCoinbase(view) ? [] : transactions.inputsOf(at.pid, view)
      const values = inputs.map(({ value }) => value)
      const predecessor: Predecessor | undefined = predecessorsIn(view, values)[at.vout]
      const from: Input | undefined = predecessor?.kind === 'input' ? inputs[predecessor.input] : undefined
      const { active } = transactions.byId(at.pid)
      const link = { ptid: from?.pid ?? null, pvout: from?.vout ?? null, carrier: 1, recency: null }
      const unresolved = predecessor?.kind === 'unknown' ? 1 : 0
      const { pid, vout: index } = at
      behind.push([
        parsed,
        { ...link, unresolved, tid: pid, vout: index, output, active, coin: undefined, isLast: true },
      ])
      at = from
      coin = at && outputAt(this.sql, at.pid, at.vout)
    }
    for (let next = behind.pop(); next !== undefined; next = behind.pop()) {
      const [parsed, output] = next
      coin = this.add(parsed, { ...output, coin })
    }
    return coin
  }

  /** Numbers an output again, and those after it as far as anything changes. */
  renumber(start: OutputRow): void {
    // One object for each row, as a claim may change before its output has its turn.
    const rows = new Map([[start.oid, start]])
    const left = new Map<number, number>()
    const waiting = [{ row: start, isMapChanged: false }]
    const push = (read: OutputRow, isMapChanged: boolean): void => {
      const row = rows.get(read.oid) ?? read
      rows.set(row.oid, row)
      waiting.push({ row, isMapChanged })
    }
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const { row } = next
      const coin = row.ptid === null ? undefined : outputAt(this.sql, row.ptid, row.pvout ?? 0)
      const place = this.placeOf(row, coin)
      const isMoved = PLACE.some((column) => place[column] !== row[column])
      if (!isMoved && !next.isMapChanged && row !== start) continue
      if (row.snap === row.oid && place.snap !== row.oid) deleteSnapshot(this.sql, row.oid)
      let { isMapChanged } = next
      if (place.snap === row.oid) {
        const map: Buffer = this.sql.get('select map from out where oid = ?', row.oid)?.map
        isMapChanged = writeSnapshot(this.sql, { oid: row.oid, before: mapBefore(place, coin), map })
      }
      if (isMoved) {
        this.noteMoved(row, place)
        const hasNewNumber = place.lin !== row.lin || place.step !== row.step
        if (row.run !== null) left.set(row.run, (left.get(row.run) ?? 0) + 1)
        Object.assign(row, place, { run: null })
        this.sql.run(SET_PLACE, ...PLACE.map((column) => place[column]), row.run, row.oid)
        if (row.lin === null && coin !== undefined) this.join(coin, row)
        if (hasNewNumber)
          for (const claim of claimsBehind(this.sql, row)) {
            const known = rows.get(claim.oid) ?? claim
            if (this.setClaim(known)) push(known, false)
          }
      }
      if (isMoved || isMapChanged)
        for (const receiver of receiversOf(this.sql, row)) push(receiver, isMapChanged)
    }
    for (const [run, count] of left) this.runs.leave(run, count)
  }

  /** Removes carriers that no output receives any more. */
  private release(tid: number, vout: number): void {
    let coin = outputAt(this.sql, tid, vout)
    while (coin?.carrier === 1 && receiversOf(this.sql, coin).length === 0) {
      this.noteMoved(coin, UNPLACED)
      this.sql.run('delete from out where oid = ?', coin.oid)
      if (coin.run !== null) this.runs.leave(coin.run, 1)
      this.deleteHole(coin)
      coin = coin.ptid === null ? undefined : outputAt(this.sql, coin.ptid, coin.pvout ?? 0)
    }
  }

  private get(oid: number): OutputRow {
    const row = outputWith(this.sql, oid)
    if (row === undefined) throw new Error(`the index has no output ${oid}`)
    return row
  }

  /**
   * Numbers an output by the coin that it received. Without a number, it joins the run of that coin, or its coin is noted as missing.
   */
  private link(oid: number): OutputRow {
    const row = this.get(oid)
    this.renumber(row)
    const coin =
      row.lin !== null || row.ptid === null ? undefined : outputAt(this.sql, row.ptid, row.pvout ?? 0)
    if (row.lin === null && coin === undefined) this.addHole(row)
    else this.deleteHole(row)
    if (coin !== undefined && (row.run === null || row.run !== coin.run)) this.join(coin, row)
    return row
  }

  /** Joins the run of an output with that of the coin that it received. */
  private join(coin: OutputRow, row: OutputRow): void {
    const { sql } = this
    const { attributes, agenda, transactions, journal } = this.tables
    const old = this.runs.headOf(row)
    const { run, renamed, isBack } = this.runs.join(coin, row)
    const members = renamed === null ? [isBack ? row : coin] : outputsInRun(sql, renamed)
    if (renamed !== null) sql.run('update out set run = ? where run = ?', run, renamed)
    attributes.moveRun(old, this.runs.headOf({ oid: row.oid, run }), run)
    row.run = run
    coin.run = run
    if (row.oid <= agenda.lastEarlierOutput) journal.change(dependency.lineages)
    // More claims may count now: those on outputs of the one run as parents, or those made by spenders of the other.
    for (const member of members)
      for (const claim of isBack
        ? claimsBehind(sql, member)
        : claimsOn(sql, outpointKey(transactions.txidOf(member.tid), member.vout)))
        this.judgeClaim(claim.oid)
  }

  private placeOf(
    row: Pick<
      OutputRow,
      'oid' | 'tid' | 'vout' | 'ptid' | 'unresolved' | 'content' | 'parent' | 'pok' | 'mlen'
    >,
    coin: Place | undefined,
  ): Place {
    const isStart = row.ptid === null && row.unresolved === 0
    const before = isStart ? UNPLACED : coin
    if (before === undefined || (!isStart && before.lin === null)) return UNPLACED
    const step = isStart ? 0 : (before.step ?? 0) + 1
    const origin = before.origin ?? (row.content ? step : null)
    const { lastmap, snap, since, latestparent } = before
    let map = { lastmap, snap, since }
    // Before the first content, neither MAP nor parents are the ordinal's.
    const hasMap = row.mlen !== null && origin !== null && !this.tables.registers.hasOutput(row)
    if (hasMap) map = afterMap(this.sql, map, { oid: row.oid, length: row.mlen ?? 0 })
    return {
      lin: isStart ? row.oid : before.lin,
      step,
      origin,
      latest: row.content ? row.oid : before.latest,
      latestparent: row.parent && row.pok && origin !== null ? row.oid : latestparent,
      lastmap: map.lastmap,
      mprev: hasMap ? lastmap : null,
      snap: map.snap,
      since: map.since,
    }
  }

  private contentsOf(vout: number, output: TransactionOutput, view: ParsedTransaction['view']): Contents {
    const contents = contentsOf(output, view)
    const purged = this.tables.transactions.source.purgedAt?.({ txid: view.txid, vout })
    if (purged === undefined) return contents
    const { sha256, length: clen, position: coff } = purged
    return { ...contents, sha: Buffer.from(sha256, 'hex'), clen, coff }
  }

  /** Notes or updates the attributes of an ordinal after a new output. Most moves change only the owner. */
  private noteAdded(row: NewOutput, coin: OutputRow | undefined, isLast: boolean): void {
    const { agenda, attributes } = this.tables
    if (coin === undefined && isLast && row.active === 1) {
      if (row.carrier === 0) attributes.addFirst(row)
      return
    }
    if (row.lin === null) agenda.unnumbered.add(row.oid)
    const isTransfer =
      isLast && row.content === 0 && row.parent === null && row.mlen === null && row.carrier === 0
    const isTip = row.active === 1 && coin?.active === 1 && coin.carrier === 0
    // Another active branch: where a non-mint spent a node, or one transaction spends a coin twice.
    const hasBranch = (from: OutputRow): boolean =>
      this.sql.get(BRANCH, row.lin, from.step, row.oid, from.oid) !== undefined
    if (row.lin === null || !isTransfer || !isTip || agenda.lineages.has(row.lin) || hasBranch(coin)) {
      if (row.lin !== null) agenda.lineages.add(row.lin)
      return
    }
    attributes.setOwner(row.lin, coin.owner, row.owner)
  }

  private noteMoved(row: OutputRow, place: Place): void {
    const { agenda, journal } = this.tables
    for (const lin of [row.lin, place.lin]) if (lin !== null) agenda.lineages.add(lin)
    if (row.lin === null || place.lin === null) agenda.unnumbered.add(row.oid)
    if (row.oid > agenda.lastEarlierOutput) return
    journal.change(dependency.lineages)
    // Numbers change only where an output becomes a name or ceases to be one.
    if (row.lin !== null && (place.lin !== row.lin || place.step !== row.step)) journal.changeAll()
  }

  /** Whether a claimed parent counts: its transaction spends that ordinal (BRC-160), at the named output or a later one. */
  private doesClaimCount({ tid, parent }: Pick<OutputRow, 'tid' | 'parent'>): boolean {
    if (parent === null) return false
    const named = this.tables.transactions.byTxid(parent.subarray(0, 32))
    if (named === undefined) return false
    const vout = parent.readUInt32BE(32)
    const { sql } = this
    if (sql.get('select 1 as one from spend where pid = ? and vout = ? and sid = ?', named.id, vout, tid))
      return true
    const row = outputAt(sql, named.id, vout)
    if (row === undefined || row.carrier === 1) return false
    const spent = sql.all(
      `select o.oid from spend s join out o on o.tid = s.pid and o.vout = s.vout
        where s.sid = ?1 and o.carrier = 0 and (o.lin = ?2 and o.step >= ?3 or o.run = ?4)`,
      ...[tid, row.lin, row.step, row.run],
    )
    return spent.some(({ oid }) => this.isBehind(row, oid))
  }

  /** Whether an output leads to a later one of its lineage or run. */
  private isBehind(row: OutputRow, later: number): boolean {
    const { sql } = this
    // Only double spends make branches.
    if (
      row.lin !== null &&
      sql.all('select oid from out where lin = ? and step = ? limit 2', row.lin, row.step).length === 1
    )
      return true
    for (let at = outputWith(sql, later); at !== undefined; ) {
      if (at.oid === row.oid) return true
      if (at.ptid === null || (row.step !== null && at.step === row.step)) return false
      at = outputAt(sql, at.ptid, at.pvout ?? 0)
    }
    return false
  }

  private judgeClaim(oid: number): void {
    const claim = this.get(oid)
    if (this.setClaim(claim)) this.renumber(claim)
  }

  /** @returns Whether that has changed. */
  private setClaim(claim: OutputRow): boolean {
    const pok = this.doesClaimCount(claim) ? 1 : 0
    if (pok === claim.pok) return false
    claim.pok = pok
    this.sql.run('update out set pok = ? where oid = ?', pok, claim.oid)
    const { agenda, journal } = this.tables
    if (claim.oid <= agenda.lastEarlierOutput) {
      journal.change(dependency.lineages)
      journal.change(dependency.inscriptions)
    }
    return true
  }

  private addHole({ tid, vout }: Pick<OutputRow, 'tid' | 'vout'>): void {
    const { seq } = this.tables.transactions.byId(tid)
    this.sql.run(
      'insert into missing (tid, vout, seq) values (?, ?, ?) on conflict do nothing',
      tid,
      vout,
      seq,
    )
  }

  private deleteHole({ tid, vout }: Pick<OutputRow, 'tid' | 'vout'>): void {
    this.sql.run('delete from missing where tid = ? and vout = ?', tid, vout)
  }

  /** Notes whether a transaction spends ordinals whose new place is unknown. */
  setUnplaced(tid: number, isUnplaced: boolean): void {
    const whole = { tid, vout: WHOLE_TRANSACTION }
    if (isUnplaced) this.addHole(whole)
    else this.deleteHole(whole)
  }
}

/** The place of the MAP before an output whose MAP counts. */
function mapBefore({ mprev }: Place, coin: Place | undefined): Pick<Place, 'lastmap' | 'snap'> {
  return { lastmap: mprev, snap: mprev === null ? null : (coin?.snap ?? null) }
}
