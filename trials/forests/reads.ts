import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { attribute } from '../../backend/src/graph/attributes.js'
import type { GraphStore } from '../../backend/src/graph/graph-store.js'
import { EMPTY_MAP, type MapState, mapRecordOf } from '../../backend/src/graph/map-merge.js'
import type { OutputRecord } from '../../backend/src/graph/records.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../backend/src/protocol/profile.js'
import { ownerOf } from '../../test/support/graph/life.js'
import { CHUNK_TYPE, CONTENT_TYPES, KEYS, PARENT } from '../../test/support/graph/said-outputs.js'
import type { ForestAnswers } from './answers.js'
import type { Forest } from './forest.js'
import type { ForestModel } from './model.js'
import type { ForestNode } from './node.js'

/** Answers by what was asked. */
export type Answered = Record<string, unknown>

/** Every outpoint of a forest. */
export function outpointsOf(forest: Forest): string[] {
  return [forest.genesis, ...forest.transactions].flatMap(({ said, outpoint }) =>
    said.map((_, vout) => outpoint(vout)),
  )
}

/** Each name that is minted somewhere, and one that is not. */
export function namesOf({ transactions }: Forest): string[] {
  return [...new Set(transactions.flatMap(({ mint }) => mint?.name ?? [])), 'ab', 'zz'].sort()
}

/** Fails where two sets of answers are not the same, showing only those that are not. */
export function expectSame(got: Answered, expected: Answered): void {
  if (isDeepStrictEqual(got, expected)) return
  const keys = [...new Set([...Object.keys(got), ...Object.keys(expected)])]
  const other = keys.filter((key) => !isDeepStrictEqual(got[key], expected[key]))
  const pick = (answers: Answered) => Object.fromEntries(other.map((key) => [key, answers[key]]))
  expect(pick(got)).toEqual(pick(expected))
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const plain = (map: MapState): unknown => JSON.parse(JSON.stringify(mapRecordOf(map)))
const texts = (outpoints: Outpoint[]): string[] => outpoints.map(formatOutpoint)
const text = (outpoint: Outpoint | undefined): string | undefined => outpoint && formatOutpoint(outpoint)
export const SEQUENCES = [-2, -1, 0, 1, 2, 3]

/** What a store answers to every reader. */
export async function storeAnswers(graph: GraphStore, forest: Forest): Promise<Answered> {
  const answers: Answered = {}
  for (const each of outpointsOf(forest)) {
    const outpoint = parseOutpoint(each)
    answers[`output ${each}`] = shownOutput(await graph.ordinals.output(outpoint))
    answers[`spender ${each}`] = await graph.transactions.spenderOf(outpoint)
    answers[`current ${each}`] = text(await graph.ordinals.currentOutput(outpoint))
    const lineage: string[] = []
    for await (const hop of graph.ordinals.lineage(outpoint)) lineage.push(formatOutpoint(hop))
    answers[`lineage ${each}`] = lineage
    for (const sequence of SEQUENCES) {
      const step = await graph.ordinals.at(outpoint, sequence)
      answers[`${each}:${sequence}`] = step && {
        outpoint: formatOutpoint(step.output.outpoint),
        sequence: step.sequence,
        origin: formatOutpoint(step.origin),
        content: formatOutpoint(step.content.outpoint),
        parent: text(step.parent),
        map: plain((await graph.metadata.merged(step.output.outpoint)) ?? EMPTY_MAP),
        tip: step.tip,
      }
    }
    const stream = { outpoint, chunkTypes: [CHUNK_TYPE] }
    const summary = await graph.streams.summary(stream)
    const bodies: string[] = []
    for await (const chunk of graph.streams.chunks(stream)) bodies.push(chunk.sha256)
    answers[`stream ${each}`] = summary && {
      contentType: summary.contentType,
      length: summary.length,
      bodies,
    }
  }
  for (const { txid } of forest.transactions) {
    answers[`first content ${txid}`] = text((await graph.ordinals.firstContentOutput(txid))?.outpoint)
    const record = await graph.transactions.get(txid)
    answers[`transaction ${txid}`] = record && { height: record.proof?.height, root: record.proof?.root }
    answers[`height ${txid}`] = await graph.transactions.heightOf(txid)
    answers[`inactive ${txid}`] = (await graph.transactions.winnerOver(txid)) !== undefined
  }
  for (const name of namesOf(forest)) {
    answers[`origin of ${name}`] = text(await graph.names.originOf(name))
    answers[`live node of ${name}`] = text(await graph.names.liveNode(name))
    for (const longer of [name, `${name}a`]) {
      const node = await graph.names.longestNode(longer)
      answers[`longest node of ${longer}`] = node && { ...node, outpoint: formatOutpoint(node.outpoint) }
    }
  }
  const all = outpointsOf(forest).map(parseOutpoint)
  answers['genuine nodes'] = (await graph.names.genuineNodes(all))
    .map(({ outpoint, domain }) => `${formatOutpoint(outpoint)} ${domain}`)
    .sort()
  answers['genuine origins'] = (await graph.names.genuineOrigins(all))
    .map(({ outpoint, name }) => `${formatOutpoint(outpoint)} ${name}`)
    .sort()
  for (const prefix of ['', 'a', 'b']) {
    const names = await graph.names.byPrefix({ prefix, limit: 100 })
    answers[`names from ${prefix}`] = names.map(({ name, outpoint }) => `${name} ${formatOutpoint(outpoint)}`)
  }
  for (const [said, attributes] of askedAttributes()) {
    const tips = await graph.attributes.tipsWith({ attributes: [...attributes], limit: 1000 })
    answers[`tips with ${said}`] = texts(tips)
  }
  for (const topic of [TOPICS.names, TOPICS.ordinals]) {
    const unspent = await graph.admissions.unspentOfTopic({ topic, since: 0 })
    answers[`unspent of ${topic}`] = unspent.map(({ outpoint }) => formatOutpoint(outpoint)).sort()
  }
  return answers
}

function askedAttributes() {
  return [
    ...CONTENT_TYPES.map((type) => [type, [attribute.contentType(type)]] as const),
    ...KEYS.map((key) => [`owner ${key}`, [attribute.owner(ownerOf(key))]] as const),
    ['parent', [attribute.parent(parseOutpoint(PARENT))]] as const,
    ...KEYS.flatMap((key) =>
      [0, 1, 2].map(
        (value) => [`key ${key}=value ${value}`, [attribute.map(`key ${key}`, `value ${value}`)]] as const,
      ),
    ),
  ]
}

function shownOutput(output: OutputRecord | undefined): unknown {
  return (
    output && {
      satoshis: output.satoshis,
      content: output.content,
      owner: output.owner,
      parent: text(output.parent),
      previous: output.unsettled ? 'unknown' : text(output.previous),
    }
  )
}

/** The same, as the model has it. */
export function expectedAnswers(answers: ForestAnswers, model: ForestModel): Answered {
  const { forest } = model
  const expected: Answered = {}
  for (const each of outpointsOf(forest)) {
    expected[`output ${each}`] = expectedOutput(answers, each)
    expected[`spender ${each}`] = answers.spenderOf(each)
    expected[`current ${each}`] = answers.currentOf(each)
    expected[`lineage ${each}`] = answers.lineage(each)
    for (const sequence of SEQUENCES) expected[`${each}:${sequence}`] = answers.stepOf(each, sequence)
    const stream = answers.streamOf(each)
    expected[`stream ${each}`] = stream && {
      contentType: stream.contentType,
      length: stream.bodies.reduce((sum, { length }) => sum + length, 0),
      bodies: stream.bodies.map(sha256),
    }
  }
  for (const { txid } of forest.transactions) {
    const proof = model.proofs.get(txid)
    expected[`first content ${txid}`] = answers.firstContentOf(txid)
    expected[`transaction ${txid}`] = model.insertionOrder.has(txid)
      ? { height: proof?.height, root: proof?.root }
      : undefined
    expected[`height ${txid}`] = proof?.height
    expected[`inactive ${txid}`] = model.insertionOrder.has(txid) && !answers.decision.counts.has(txid)
  }
  for (const name of namesOf(forest)) {
    expected[`origin of ${name}`] = answers.originOf(name)
    expected[`live node of ${name}`] = answers.liveNodes(name)[0]
    for (const longer of [name, `${name}a`])
      expected[`longest node of ${longer}`] = answers.longestNode(longer)
  }
  expected['genuine nodes'] = [...answers.nodes].map(([outpoint, domain]) => `${outpoint} ${domain}`).sort()
  expected['genuine origins'] = [...answers.origins].map(([outpoint, name]) => `${outpoint} ${name}`).sort()
  for (const prefix of ['', 'a', 'b']) {
    const names = answers.names.filter(({ name }) => name.startsWith(prefix))
    expected[`names from ${prefix}`] = names.map(({ name, outpoint }) => `${name} ${outpoint}`)
  }
  for (const [said, tips] of Object.entries(expectedTips(answers))) expected[`tips with ${said}`] = tips
  for (const topic of [TOPICS.names, TOPICS.ordinals] as const) {
    const held = [...model.held[topic]].filter((each) => answers.decision.counts.has(each.slice(0, 64)))
    expected[`unspent of ${topic}`] = held.filter((each) => !answers.isInput(each)).sort()
  }
  return expected
}

function expectedOutput(answers: ForestAnswers, outpoint: string): unknown {
  if (!answers.held.has(outpoint)) return undefined
  const { satoshis, content, owner, parent } = answers.said(outpoint)
  return {
    satoshis,
    content: content && {
      sha256: sha256(content.body),
      contentType: content.contentType,
      length: content.body.length,
    },
    owner,
    parent,
    previous: answers.previousOf(outpoint),
  }
}

/** Where the ordinals are now that are found by something, by what that is. */
export function expectedTips(answers: ForestAnswers): Record<string, string[]> {
  const current = (tip: string) => answers.stepOf(tip, -1)
  const contentType = (tip: string): string | undefined => {
    const content = current(tip)?.content
    return content && answers.said(content).content?.contentType
  }
  const found: Record<string, string[]> = {}
  for (const type of CONTENT_TYPES) found[type] = answers.tipsWhere((tip) => contentType(tip) === type)
  for (const key of KEYS) {
    found[`owner ${key}`] = answers.tipsWhere(
      (tip) => !answers.isInput(tip) && answers.said(tip).owner === ownerOf(key),
    )
    for (const value of [0, 1, 2]) {
      found[`key ${key}=value ${value}`] = answers.tipsWhere((tip) =>
        [current(tip)?.map[`key ${key}`] ?? []].flat().includes(`value ${value}`),
      )
    }
  }
  found.parent = answers.tipsWhere((tip) => current(tip)?.parent === PARENT)
  return found
}

/** The rows that answers are read from, but for what says when they came, and what pays. */
export async function answeringRows(
  { database }: Pick<ForestNode, 'database'>,
  forest: Forest,
): Promise<Answered> {
  const { txid: purse } = forest.purse
  const rows = async (sql: string): Promise<string[]> => {
    const found: object[] = await database.reader.all(sql, [])
    return found
      .map((row) => JSON.stringify(row, (_, value) => (value instanceof ArrayBuffer ? hex(value) : value)))
      .filter(
        (row) => !row.includes(`"spender":"${purse}"`) && !row.startsWith(`{"txid":"${purse}","height"`),
      )
      .sort()
  }
  return {
    transactions: await rows(
      `select txid, height, merkle_root from graph_transactions as own where silent = 0 and (
         exists (select 1 from graph_outputs as outputs where outputs.txid = own.txid)
         or exists (select 1 from graph_nodes as nodes where nodes.txid = own.txid)
       )`,
    ),
    spends: await rows('select * from graph_spends'),
    outputs: await rows('select * from graph_outputs where carrier = 0'),
    nodes: await rows('select * from graph_nodes'),
    names: await rows('select * from graph_names'),
    attributes: await rows('select * from graph_traits'),
  }
}

function hex(bytes: ArrayBuffer): string {
  return Buffer.from(bytes).toString('hex')
}

/** The rows that answers are read from are those of what counts. */
export async function expectTables(
  { database }: Pick<ForestNode, 'database'>,
  answers: ForestAnswers,
  forest: Forest,
): Promise<void> {
  const rows = async (sql: string): Promise<string[]> => {
    const found: Record<string, unknown>[] = await database.reader.all(sql, [])
    return found.map((row) => Object.values(row).join(' ')).sort()
  }
  const at = (outpoint: string): string => `${outpoint.slice(0, 64)} ${outpoint.slice(65)}`
  const spends = [...answers.decision.counts].flatMap((txid) =>
    (forest.byTxid.get(txid)?.spends ?? []).map((spent) => `${at(spent)} ${txid}`),
  )
  expectSame(
    {
      spends: await rows('select lower(hex(txid)), vout, lower(hex(spender)) from graph_spends'),
      outputs: await rows('select lower(hex(txid)), vout from graph_outputs where carrier = 0'),
      nodes: await rows('select lower(hex(txid)), vout, domain from graph_nodes'),
      names: await rows('select lower(hex(txid)), vout, name from graph_names'),
    },
    {
      spends: spends.sort(),
      outputs: [...answers.held].map(at).sort(),
      nodes: [...answers.nodes].map(([outpoint, domain]) => `${at(outpoint)} ${domain}`).sort(),
      names: [...answers.origins].map(([outpoint, name]) => `${at(outpoint)} ${name}`).sort(),
    },
  )
}
