import type { Writable } from 'node:stream'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { MiningEvent } from '../mining/mine-name.js'
import { harmless } from '../server/harmless-text.js'

export type ProgressStream = Writable & { isTTY?: boolean }

/** Tells how mining goes on: the search in one line that changes, where a person looks on, and what happened below it. */
export class MiningProgress {
  private shown = false

  constructor(private readonly stream: ProgressStream) {}

  tell(event: MiningEvent): void {
    if (event.kind === 'searching') this.show(searching(event))
    else if (event.kind === 'started')
      this.say(`mining ${event.name} from ${formatOutpoint(event.node.outpoint)}`)
    else if (event.kind === 'moved')
      this.say(`the node to mine ${event.name} from has moved: going on from the new one`)
    else if (event.kind === 'minted') this.say(`mined ${event.name} after ${grouped(event.hashes)} hashes`)
  }

  /** Says something in a line of its own; a server may have a say in it. */
  say(text: string): void {
    this.end()
    this.stream.write(`${harmless(text)}\n`)
  }

  /** Leaves no half line behind. */
  end(): void {
    if (this.shown) this.stream.write('\r\x1b[K')
    this.shown = false
  }

  private show(text: string): void {
    if (this.stream.isTTY !== true) return
    this.stream.write(`\r\x1b[K${harmless(text)}`)
    this.shown = true
  }
}

function searching({ name, progress }: Extract<MiningEvent, { kind: 'searching' }>): string {
  const { hashes, hashesPerSecond, expectedSeconds, luck } = progress
  const rate = (hashesPerSecond / 1e6).toFixed(1)
  return `${name}: ${grouped(hashes)} hashes, ${rate} million a second; one in ${expectedSeconds.toFixed(1)} s on average, ${(luck * 100).toFixed(0)} % would have it by now`
}

function grouped(count: number): string {
  return count.toLocaleString('en-US')
}
