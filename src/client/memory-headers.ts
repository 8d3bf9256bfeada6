import { HEADER_BYTES, headerCount } from '../../backend/src/protocol/block-header.js'
import type { HeaderRange, HeaderStore } from '../../backend/src/protocol/header-store.js'
import { askStore, type SegmentStore } from './segment-store.js'

/** How many headers are stored under one key. */
const PAGE = 2000
const PAGE_BYTES = PAGE * HEADER_BYTES
/** No store has headers above this height: one that claims so is damaged. */
const MAX_KEPT = 4_000_000

/**
 * Block headers in memory, and in a store of texts, if there is one, to which others may write. Headers that cannot be stored are
 * fetched again.
 */
export class MemoryHeaders implements HeaderStore {
  private readonly pages = new Map<number, Uint8Array>()
  private place: HeaderRange | undefined
  private opening: Promise<void> | undefined

  /** @param kept A store, and the prefix of its keys. */
  constructor(private readonly kept?: { store: SegmentStore; folder: string }) {}

  async range(): Promise<HeaderRange | undefined> {
    this.opening ??= this.open()
    await this.opening
    return this.place
  }

  async read({ from, count }: { from: number; count: number }): Promise<Uint8Array> {
    const range = await this.range()
    const end = Math.min(from + count, (range?.to ?? -1) + 1)
    if (range === undefined || from < range.from || end <= from) return new Uint8Array()
    const headers = new Uint8Array((end - from) * HEADER_BYTES)
    this.eachPart(from, end, (page, at, bytes) => {
      headers.set(page.subarray(at, at + bytes.end - bytes.start), bytes.start)
    })
    return headers
  }

  async replaceFrom({ height, headers }: { height: number; headers: Uint8Array }): Promise<boolean> {
    const { from } = (await this.range()) ?? { from: height }
    this.place = { from: Math.min(from, height), to: height + headerCount(headers) - 1 }
    await this.write(height, headers)
    return true
  }

  async addBelow({ to, headers }: { to: number; headers: Uint8Array }): Promise<boolean> {
    const height = to - headerCount(headers) + 1
    this.place = { from: height, to: this.place?.to ?? to }
    await this.write(height, headers)
    return true
  }

  async clear(): Promise<void> {
    this.pages.clear()
    this.place = undefined
  }

  private async write(height: number, headers: Uint8Array): Promise<void> {
    const changed: number[] = []
    this.eachPart(height, height + headerCount(headers), (page, at, { start, end }, number) => {
      page.set(headers.subarray(start, end), at)
      changed.push(number)
    })
    try {
      for (const number of changed) await this.put(`p${number}`, toBase64(this.page(number)))
      // Last: pages outside this range are not read.
      const { from, to } = this.place ?? { from: 0, to: -1 }
      await this.put('place', `${from} ${to - from + 1}`)
    } catch {
      // The headers in memory are complete.
    }
  }

  /** Calls back for each page in a range of heights, with the place in the page, and the part of the range's bytes. */
  private eachPart(
    from: number,
    end: number,
    use: (page: Uint8Array, at: number, bytes: { start: number; end: number }, number: number) => void,
  ): void {
    for (let height = from; height < end; ) {
      const number = Math.floor(height / PAGE)
      const next = Math.min(end, (number + 1) * PAGE)
      const bytes = { start: (height - from) * HEADER_BYTES, end: (next - from) * HEADER_BYTES }
      use(this.page(number), (height % PAGE) * HEADER_BYTES, bytes, number)
      height = next
    }
  }

  private page(number: number): Uint8Array {
    const page = this.pages.get(number) ?? new Uint8Array(PAGE_BYTES)
    this.pages.set(number, page)
    return page
  }

  private async open(): Promise<void> {
    const place = /^(\d{1,9}) ([1-9]\d{0,8})$/.exec((await this.get('place')) ?? '')
    if (place === null) return
    const [from, count] = [Number(place[1]), Number(place[2])]
    if (from + count > MAX_KEPT) return
    for (let number = Math.floor(from / PAGE); number * PAGE < from + count; number++) {
      const page = fromBase64((await this.get(`p${number}`)) ?? '')
      if (page?.length !== PAGE_BYTES) return this.pages.clear()
      this.pages.set(number, page)
    }
    this.place = { from, to: from + count - 1 }
  }

  /** A text from the store; undefined if the store fails. */
  private async get(name: string): Promise<string | undefined> {
    const { kept } = this
    if (kept === undefined) return undefined
    const { store, folder } = kept
    return await askStore(store, () => store.get(`${folder}/${name}`)).catch(() => undefined)
  }

  private async put(name: string, text: string): Promise<void> {
    const { kept } = this
    if (kept !== undefined) await askStore(kept.store, () => kept.store.put(`${kept.folder}/${name}`, text))
  }
}

/** How many bytes are converted to characters at once. */
const SLICE = 8192

function toBase64(bytes: Uint8Array): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += SLICE)
    text += String.fromCharCode(...bytes.subarray(at, at + SLICE))
  return btoa(text)
}

function fromBase64(text: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}
