import type { RequestListener, ServerResponse } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { fromHex, toHex } from '../../../backend/src/protocol/bytes.js'
import { Random } from '../../../trials/random.js'
import { listening } from '../server/connections.js'
import type { ChainWorld } from './chain-world.js'
import type { LiveEvent, Misbehaviour } from './live-plan.js'

type Protocol = 'junglebus' | 'whatsonchain'

/** What a source says; a number is a status without more. */
type Reply = Uint8Array | object | number

/** What is asked, whatever the protocol. */
type Question =
  | { about: 'transaction' | 'proof'; txid: string }
  | { about: 'spender'; outpoint: string; mined?: boolean }

/** A source of a world over HTTP, which may misbehave. */
class WorldSource {
  url = ''
  private how: { how: Misbehaviour; share: number; random: Random } | undefined
  private readonly stalled = new Set<ServerResponse>()

  constructor(
    private readonly world: ChainWorld,
    private readonly protocol: Protocol,
    private readonly onQuestion: () => void,
  ) {}

  readonly listener: RequestListener = ({ url = '' }, response) => {
    this.onQuestion()
    const question = this.protocol === 'junglebus' ? ofJungleBus(url) : ofWhatsOnChain(url)
    if (question === undefined) return void response.writeHead(404).end()
    const { how, share, random } = this.how ?? { how: undefined, share: 0, random: new Random(0) }
    if (how === undefined || random.next() >= share) return send(response, this.reply(question))
    switch (how) {
      case 'busy':
        return void response.writeHead(429, { 'Retry-After': '1' }).end()
      case 'fails':
        return void response.writeHead(500).end()
      case 'stalls':
        return void this.stalled.add(response)
      case 'cuts':
        response.writeHead(200, { 'Content-Length': 1000 })
        return void response.write('ab', () => response.destroy())
      default:
        return send(response, this.lie(question, how, random))
    }
  }

  misbehave({ how, share, choice }: { how: Misbehaviour; share: number; choice: number }): void {
    this.how = { how, share, random: new Random(choice) }
  }

  recover(): void {
    this.how = undefined
    for (const each of this.stalled) each.destroy()
    this.stalled.clear()
  }

  private reply(question: Question): Reply {
    const { world } = this
    if (question.about === 'spender') {
      const { outpoint, mined } = question
      const spender = world.spenderOf(outpoint)
      const isAsked = spender !== undefined && (mined === undefined || world.isMined(spender) === mined)
      return this.spend({ spender: isAsked ? spender : undefined, question })
    }
    const record = world.record(question.txid)
    const bytes = question.about === 'proof' ? record?.proof?.merklePath : record?.raw
    return bytes === undefined ? 404 : this.bytes(bytes)
  }

  private spend({
    spender,
    question,
  }: {
    spender: string | undefined
    question: Question & { about: 'spender' }
  }): Reply {
    const { outpoint, mined } = question
    const txid = outpoint.slice(0, 64)
    if (this.protocol === 'junglebus') {
      if (!this.world.isKnown(txid)) return 404
      return spender === undefined ? new Uint8Array() : fromHex(spender)
    }
    if (spender !== undefined) return { txid: spender, vin: 0, status: mined ? 'confirmed' : 'unconfirmed' }
    return mined && !this.world.isMined(txid) ? 400 : 404
  }

  private bytes(bytes: Uint8Array): Reply {
    return this.protocol === 'junglebus' ? bytes : Buffer.from(toHex(bytes))
  }

  /** An answer that may be wrong; the right one to a question that this is not about. */
  private lie(question: Question, how: Misbehaviour, random: Random): Reply {
    const { transactions } = this.world.history
    const other = random.pick(transactions)
    if (question.about === 'spender') {
      if (how === 'hides spenders') return this.spend({ spender: undefined, question })
      if (how === 'forgets') return this.protocol === 'junglebus' ? 404 : 400
      if (how === 'lies about spenders') return this.spend({ spender: other?.txid, question })
    }
    if (question.about !== 'spender' && how === 'forgets') return 404
    if (question.about === 'transaction' && how === 'lies about transactions' && other)
      return this.bytes(other.raw)
    if (question.about === 'proof' && how === 'lies about proofs')
      return this.bytes(this.falseProof(question.txid, random))
    return this.reply(question)
  }

  /** A path that leads from the transaction to no block, or one of another transaction. */
  private falseProof(txid: string, random: Random): Uint8Array {
    const { world } = this
    const stale = world.staleBlockOf(txid)
    if (stale !== undefined) return stale.proof(txid).merklePath
    const other = random.pick(world.history.transactions.filter((each) => world.isMined(each.txid)))
    const right = world.record(other?.txid ?? '')?.proof?.merklePath ?? new Uint8Array(40)
    return Uint8Array.from(right, (byte, at) => (at === right.length - 1 ? byte ^ 1 : byte))
  }
}

/** Several sources that know one world, for one run. */
export class WorldSources {
  private asked = 0
  private readonly waiting = new Set<() => void>()

  private constructor(
    private readonly sources: readonly WorldSource[],
    private readonly parts: { settings: string; close(): Promise<void> },
  ) {}

  static async start(world: ChainWorld, protocols: readonly Protocol[]): Promise<WorldSources> {
    let all: WorldSources | undefined
    const sources = protocols.map((protocol) => new WorldSource(world, protocol, () => all?.count()))
    const servers = await Promise.all(sources.map(({ listener }) => listening(listener)))
    const settings = servers.map(({ url }, at) => `${protocols[at]}=${url}`).join(',')
    all = new WorldSources(sources, {
      settings,
      async close() {
        await Promise.all(servers.map((server) => server.close()))
      },
    })
    return all
  }

  /** As `CHAIN_SOURCES` names them. */
  get settings(): string {
    return this.parts.settings
  }

  misbehave(event: Extract<LiveEvent, { kind: 'misbehave' }>): void {
    this.sources[event.source % this.sources.length]?.misbehave(event)
  }

  recover(): void {
    for (const each of this.sources) each.recover()
  }

  /** Waits until so many questions more have come, or so many milliseconds have passed. */
  async questions(count: number, { atMost }: { atMost: number }): Promise<void> {
    const target = this.asked + count
    const giveUp = new AbortController()
    const enough = new Promise<void>((resolve) => {
      const look = (): void => {
        if (this.asked < target) return
        this.waiting.delete(look)
        resolve()
      }
      this.waiting.add(look)
      look()
      giveUp.signal.addEventListener('abort', () => {
        this.waiting.delete(look)
      })
    })
    await Promise.race([enough, setTimeout(atMost, undefined, { signal: giveUp.signal }).catch(() => {})])
    giveUp.abort()
  }

  async close(): Promise<void> {
    this.recover()
    await this.parts.close()
  }

  private count(): void {
    this.asked++
    for (const look of [...this.waiting]) look()
  }
}

function ofJungleBus(path: string): Question | undefined {
  const [, about, id = ''] =
    /^\/v1\/(transaction\/get|transaction\/proof|txo\/spend)\/([0-9a-f_]+)(?:\/bin)?$/.exec(path) ?? []
  if (about === undefined) return undefined
  if (about === 'txo/spend') return { about: 'spender', outpoint: id }
  return { about: about === 'transaction/get' ? 'transaction' : 'proof', txid: id }
}

function ofWhatsOnChain(path: string): Question | undefined {
  const [, txid = '', rest] = /^\/v1\/bsv\/main\/tx\/([0-9a-f]{64})\/(.*)$/.exec(path) ?? []
  if (rest === 'hex') return { about: 'transaction', txid }
  if (rest === 'proof/bump') return { about: 'proof', txid }
  const [, vout, index] = /^(\d+)\/(confirmed|unconfirmed)\/spent$/.exec(rest ?? '') ?? []
  return vout === undefined
    ? undefined
    : { about: 'spender', outpoint: `${txid}_${vout}`, mined: index === 'confirmed' }
}

function send(response: ServerResponse, reply: Reply): void {
  if (typeof reply === 'number') response.writeHead(reply).end()
  else if (reply instanceof Uint8Array) response.writeHead(200).end(reply)
  else response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(reply))
}
