import type { Random } from '../../test/support/random.js'
import { type Answer, posted, type Question } from '../../test/support/server/test-server.js'
import { type Ordinal, type State, type View, viewOf } from './ordinal.js'

/** A name, and where it was mined. */
export interface Name {
  name: string
  /** In order; another one where a competing mint counts. Those that the server has not answered for follow {@link answered}. */
  origins: string[]
  /** The last origin that the server has answered for; -1 before the first. */
  answered: number
}

/** All that writers have sent. */
export class Written {
  readonly ordinals: Ordinal[] = []
  readonly names: Name[] = []
  /** Outpoints of what was refused. */
  readonly refused: string[] = []
  private readonly changed = new Set<Ordinal>()
  private namesBefore = 0

  /** Something has happened to an ordinal. */
  change(ordinal: Ordinal): void {
    if (ordinal.states.length === 1) this.ordinals.push(ordinal)
    this.changed.add(ordinal)
  }

  refuse(outpoint: string): void {
    this.refused.push(outpoint)
    if (this.refused.length > MAX_REFUSED) this.refused.shift()
  }

  /** All that was written since this was asked last, and so much of what was written before. */
  sinceLast(count: number, random: Random): Pick<Written, 'ordinals' | 'names'> {
    const some = <Value>(values: readonly Value[]): Value[] =>
      Array.from({ length: count }, () => random.pick(values)).filter((value) => value !== undefined)
    const names = [...this.names.slice(this.namesBefore), ...some(this.names)]
    const ordinals = [...this.changed, ...some(this.ordinals)]
    this.changed.clear()
    this.namesBefore = this.names.length
    return { ordinals, names }
  }
}

const MAX_REFUSED = 1000

export type Ask = (path: string, question?: Question) => Promise<Answer>

/** What is wrong with an answer, once it has come; undefined where nothing is. */
type Reading = Promise<string | undefined>

/**
 * Asks for one thing that was written. The answer has to be right for what was written when it was asked for, or for what
 * was sent until it came. Undefined where there is nothing to ask for yet.
 */
export function readOne(ask: Ask, written: Written, random: Random): Reading | undefined {
  const chance = random.next()
  const name = chance < 0.3 ? random.pick(written.names) : undefined
  if (name !== undefined) return readName(ask, name, random)
  const refused = chance > 0.9 ? random.pick(written.refused) : undefined
  if (refused !== undefined) return readRefused(ask, refused)
  const ordinal = random.pick(written.ordinals)
  return ordinal && readOrdinal(ask, ordinal, random)
}

/** Undefined where the server has not answered for it yet. */
export function readOrdinal(ask: Ask, ordinal: Ordinal, random: Random): Reading | undefined {
  const { answered } = ordinal
  if (answered < 0) return undefined
  const { path, question, wrong } = viewOf(ordinal, random)
  return ask(path, question).then((answer) => {
    const complaints = ordinal.states.slice(answered).map((state) => complaint(wrong, answer, state))
    return complaints.every((each) => each !== undefined) ? `${path}: ${complaints.join('; or ')}` : undefined
  })
}

function complaint(wrong: View['wrong'], answer: Answer, state: State): string | undefined {
  try {
    return wrong(answer, state)
  } catch (error) {
    return `it cannot be read: ${error}`
  }
}

/** Undefined where the server has not answered for it yet. */
export function readName(ask: Ask, name: Name, random: Random): Reading | undefined {
  if (name.answered < 0) return undefined
  return random.next() < 0.5 ? readOrigin(ask, name) : readOrigins(ask, name)
}

async function readOrigin(ask: Ask, { name, origins, answered }: Name): Reading {
  const { status, body } = await ask(`/svc/names/origin/${name}`)
  const outpoint = status === 200 ? (JSON.parse(String(body)) as { outpoint: string }).outpoint : undefined
  const right = origins.slice(answered)
  return outpoint !== undefined && right.includes(outpoint)
    ? undefined
    : `${status} ${body}: ${name} was mined in ${right}`
}

/** Of all that were its origin, or tried to be, one is. */
async function readOrigins(ask: Ask, { name, origins, answered }: Name): Reading {
  const asked = [...new Set(origins)]
  const { status, body } = await ask('/svc/names/origins', posted(asked))
  const genuineByOrigin = JSON.parse(String(body)) as Record<string, boolean>
  const genuine = asked.filter((origin) => genuineByOrigin[origin] === true)
  const right = origins.slice(answered)
  // What was sent since it was asked for is not among them.
  const isRight = genuine.every((origin) => right.includes(origin)) && genuine.length <= 1
  const isThere = genuine.length === 1 || !right.every((origin) => asked.includes(origin))
  return status === 200 && isRight && isThere ? undefined : `${status} ${body}: ${name} was mined in ${right}`
}

/** What lost, nobody finds. */
async function readRefused(ask: Ask, outpoint: string): Reading {
  const { status } = await ask(`/content/${outpoint}`)
  return status === 404 ? undefined : `${status} for ${outpoint}, which was refused`
}
