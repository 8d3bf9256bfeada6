import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open, rename, rm, stat, statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { z } from 'zod'
import { messageOf } from '../../../../backend/src/protocol/coded-error.js'
import { packageVersion } from '../../config/package-info.js'
import { syncFolder } from '../durable-file.js'
import { BackupError, type BackupRow, type BackupValue } from './backup-tables.js'

/**
 * A backup is gzipped JSON lines, the same for every engine: a header; for each table a line with its columns, followed by its
 * rows as lists of values; and a last line with the number of rows and the SHA-256 of all lines before. Bytes are
 * `{"b":"<base64>"}`. So truncation and changes are detected.
 */
const FORMAT = 'minetree-backup'
const VERSION = 1

export interface BackupHeader {
  engine: 'sqlite' | 'mysql' | 'mongodb'
  /** The outpoint of the tree; undefined if the store has none yet. */
  genesis?: string
  profile: string
  /** The migrations that made the tables. */
  schema: string[]
}

const header = z.object({
  format: z.literal(FORMAT),
  version: z.number(),
  minetree: z.string(),
  at: z.string(),
  engine: z.enum(['sqlite', 'mysql', 'mongodb']),
  genesis: z.string().optional(),
  profile: z.string(),
  schema: z.array(z.string()),
})
export type ReadHeader = z.infer<typeof header>

const tableLine = z.object({ table: z.string(), columns: z.array(z.string()) })
const valueShape = z.union([z.string(), z.number(), z.boolean(), z.null(), z.object({ b: z.base64() })])
const rowLine = z.array(valueShape)
const endLine = z.object({ end: z.object({ rows: z.number(), sha256: z.string() }) })

export interface BackupSummary {
  rows: number
  bytes: number
  sha256: string
}

interface NewBackup {
  file: string
  header: BackupHeader
  rows: AsyncIterable<{ table: string; row: BackupRow }>
  /** About how many bytes its rows have, if known. */
  expectedBytes: number | undefined
  /** Called after each row, with the share of `expectedBytes` that is done, if known. */
  onProgress: (done: { rows: number; share?: number }) => void
  signal: AbortSignal
}

/**
 * Writes a backup as `<file>.part`, which is renamed when it is complete, on the disk, and has been read back.
 *
 * @throws BackupError if the file exists, there is no room for it, or it cannot be written.
 */
export async function writeBackup(backup: NewBackup): Promise<BackupSummary> {
  const { file, expectedBytes } = backup
  if (await exists(file)) throw new BackupError(`${file} already exists: a backup never overwrites a file`)
  await requireRoom(file, expectedBytes)
  const part = `${file}.part`
  const handle = await openNew(part, file)
  try {
    const { rows, sha256 } = await writeTo(handle, backup)
    await handle.sync()
    await handle.close()
    const read = await checkBackup(part)
    if (read.rows !== rows || read.sha256 !== sha256)
      throw new BackupError(`${file} reads back differently than it was written: check the disk`)
    // A rename overwrites a file created meanwhile. A link would not, but not every file system has links.
    if (await exists(file))
      throw new BackupError(`${file} was created meanwhile: a backup never overwrites a file`)
    await rename(part, file)
    await syncFolder(dirname(resolve(file)))
    return read
  } catch (error) {
    await handle.close().catch(() => {})
    await rm(part, { force: true })
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOSPC' || code === 'EDQUOT')
      throw new BackupError(`there is not enough space for ${file}`, { cause: error })
    throw error
  }
}

async function writeTo(handle: FileHandle, backup: NewBackup): Promise<{ rows: number; sha256: string }> {
  const { rows, onProgress, signal, expectedBytes } = backup
  const hash = createHash('sha256')
  let count = 0
  let bytes = 0
  async function* lines(): AsyncGenerator<Buffer, void> {
    const line = (value: unknown): Buffer => {
      const bytes = Buffer.from(`${JSON.stringify(value)}\n`)
      hash.update(bytes)
      return bytes
    }
    const about = { format: FORMAT, version: VERSION, minetree: packageVersion() }
    yield line({ ...about, at: new Date().toISOString(), ...backup.header })
    let shape = ''
    for await (const { table, row } of rows) {
      signal.throwIfAborted()
      const columns = Object.keys(row)
      if (shape !== `${table} ${columns}`) yield line({ table, columns })
      shape = `${table} ${columns}`
      yield line(Object.values(row).map(encodeValue))
      count++
      bytes += bytesOfRow(row)
      onProgress({ rows: count, ...(expectedBytes && { share: bytes / expectedBytes }) })
    }
    yield Buffer.from(`${JSON.stringify({ end: { rows: count, sha256: hash.copy().digest('hex') } })}\n`)
  }
  // Level 1: content hardly compresses, and everything else does at any level.
  await pipeline(lines, createGzip({ level: 1 }), async (compressed: AsyncIterable<Buffer>) => {
    for await (const piece of compressed) await handle.write(piece)
  })
  return { rows: count, sha256: hash.digest('hex') }
}

/** Reads a whole backup. @throws BackupError if it is no backup, is truncated or was changed. */
export async function checkBackup(
  file: string,
  onProgress: (share: number) => void = () => {},
): Promise<BackupSummary & { header: ReadHeader }> {
  const read = new BackupReader(file, onProgress)
  for await (const _ of read.rows()) {
    // Every line is parsed and counted.
  }
  return read.summary()
}

/** The longest line that is read, in bytes: no row of a store comes near it, and gzip may make a line of any length. */
const MAX_LINE_BYTES = 64 * 1024 ** 2

/** Reads a backup row by row. Its rows are valid once it has reached the end. */
export class BackupReader {
  private header: ReadHeader | undefined
  private readonly hash = createHash('sha256')
  private count = 0
  private sha256: string | undefined
  private bytes = 0

  /** @param onProgress Called with the share of the file that is read. */
  constructor(
    private readonly file: string,
    private readonly onProgress: (share: number) => void = () => {},
  ) {}

  /** @throws BackupError if the file is no backup, is truncated or was changed. */
  async *rows(): AsyncGenerator<{ table: string; row: BackupRow }, void> {
    let shape: z.infer<typeof tableLine> | undefined
    let end: { rows: number; sha256: string } | undefined
    for await (const line of this.lines()) {
      if (end !== undefined) throw new BackupError(`${this.file} has data after its end`)
      const value = this.parse(line)
      const last = endLine.safeParse(value)
      if (last.success) {
        end = last.data.end
        continue
      }
      this.hash.update(line).update('\n')
      if (this.header === undefined) {
        this.header = this.readHeader(value)
        continue
      }
      if (!Array.isArray(value)) {
        shape = tableLine.safeParse(value).data
        if (shape === undefined)
          throw new BackupError(`${this.file} has a line that is neither a row nor a table`)
        continue
      }
      if (shape === undefined || value.length !== shape.columns.length)
        throw new BackupError(`${this.file} has a row before any table`)
      const values = rowLine.safeParse(value).data
      if (values === undefined)
        throw new BackupError(
          `${this.file} has a row of ${JSON.stringify(shape.table)} with a value of another kind`,
        )
      this.count++
      const entries = shape.columns.map((column, index) => [column, decodeValue(values[index] ?? null)])
      yield { table: shape.table, row: Object.fromEntries(entries) }
    }
    if (end === undefined) throw new BackupError(`${this.file} is truncated: it is not a complete backup`)
    this.sha256 = this.hash.digest('hex')
    if (end.rows !== this.count || end.sha256 !== this.sha256)
      throw new BackupError(`${this.file} is corrupt: its checksum differs`)
  }

  summary(): BackupSummary & { header: ReadHeader } {
    if (this.header === undefined || this.sha256 === undefined)
      throw new BackupError(`${this.file} is not a complete backup`)
    return { header: this.header, rows: this.count, bytes: this.bytes, sha256: this.sha256 }
  }

  private readHeader(value: unknown): ReadHeader {
    const read = header.safeParse(value)
    if (!read.success) throw new BackupError(`${this.file} is not a minetree backup`)
    if (read.data.version !== VERSION)
      throw new BackupError(`${this.file} was written by minetree ${read.data.minetree}, in another format`)
    return read.data
  }

  private parse(line: Buffer): unknown {
    try {
      return JSON.parse(line.toString('utf8'))
    } catch (cause) {
      throw new BackupError(`${this.file} has a line that is not JSON`, { cause })
    }
  }

  private async *lines(): AsyncGenerator<Buffer, void> {
    const found = await readable(stat(this.file), this.file)
    // It is read twice, and a pipe may have no writer.
    if (!found.isFile()) throw new BackupError(`${this.file} is not a file`)
    const { size } = found
    this.bytes = size
    const source = createReadStream(this.file)
    const unzipped = source.pipe(createGunzip())
    source.on('error', (error) => unzipped.destroy(error))
    let parts: Buffer[] = []
    let length = 0
    try {
      for await (const piece of unzipped as AsyncIterable<Buffer>) {
        this.onProgress(size === 0 ? 1 : source.bytesRead / size)
        let from = 0
        for (let at = piece.indexOf(0x0a); at !== -1; at = piece.indexOf(0x0a, from)) {
          yield parts.length === 0
            ? piece.subarray(from, at)
            : Buffer.concat([...parts, piece.subarray(from, at)])
          parts = []
          length = 0
          from = at + 1
        }
        if (from < piece.length) parts.push(piece.subarray(from))
        length += piece.length - from
        if (length > MAX_LINE_BYTES)
          throw new BackupError(`${this.file} has a line of more than ${MAX_LINE_BYTES} bytes`)
      }
    } catch (cause) {
      if (cause instanceof BackupError) throw cause
      throw new BackupError(`cannot read ${this.file}: ${messageOf(cause)}`, { cause })
    } finally {
      source.destroy()
      unzipped.destroy()
    }
    if (parts.length > 0) throw new BackupError(`${this.file} is truncated: it is not a complete backup`)
  }
}

/** About how many bytes a row takes in a store. */
export function bytesOfRow(row: BackupRow): number {
  return Object.values(row).reduce<number>(
    (sum, value) => sum + (value instanceof Uint8Array || typeof value === 'string' ? value.length : 8),
    0,
  )
}

function encodeValue(value: BackupValue): unknown {
  return value instanceof Uint8Array ? { b: Buffer.from(value).toString('base64') } : value
}

function decodeValue(value: z.infer<typeof valueShape>): BackupValue {
  return typeof value === 'object' && value !== null ? Buffer.from(value.b, 'base64') : value
}

async function exists(file: string): Promise<boolean> {
  return await stat(file).then(
    () => true,
    () => false,
  )
}

/** Overwrites a partial file that a killed backup left. */
async function openNew(part: string, file: string): Promise<FileHandle> {
  try {
    return await open(part, 'w')
  } catch (cause) {
    throw new BackupError(`cannot write ${file}: ${messageOf(cause)}`, { cause })
  }
}

async function requireRoom(file: string, expectedBytes: number | undefined): Promise<void> {
  const folder = dirname(resolve(file))
  const { bavail, bsize } = await readable(statfs(folder), folder)
  const free = bavail * bsize
  if (expectedBytes !== undefined && free < expectedBytes)
    throw new BackupError(
      `there is not enough space for ${file}: the store has ${expectedBytes} bytes, and ${folder} has ${free} free`,
    )
}

async function readable<Result>(reading: Promise<Result>, path: string): Promise<Result> {
  try {
    return await reading
  } catch (cause) {
    throw new BackupError(`cannot read ${path}: ${messageOf(cause)}`, { cause })
  }
}
