import { bytesOf, type Code, END, unsigned } from './wasm-code.js'

/** A function to export, on numbers of 32 bits. */
export interface WasmFunction {
  name: string
  parameters: number
  results: number
  /** How many locals follow the parameters: first those of one number, then those of four. */
  locals: { i32: number; v128: number }
  body: Code
}

const TYPE = { i32: 0x7f, v128: 0x7b, function: 0x60 } as const
const EXPORT = { function: 0, memory: 2 } as const
const MAGIC_AND_VERSION: Code = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0]

/**
 * A module without imports: functions, and a memory of 64 KiB exported as `memory` (WebAssembly core specification,
 * 5.5).
 */
export function encodeModule(functions: readonly WasmFunction[]): Uint8Array<ArrayBuffer> {
  const numbers = (count: number): Code => list(Array.from({ length: count }, () => [TYPE.i32]))
  const types = functions.map((each) => [TYPE.function, numbers(each.parameters), numbers(each.results)])
  const exports = functions.map(({ name }, index) => [text(name), EXPORT.function, unsigned(index)])
  const bodies = functions.map(({ locals, body }) => {
    const declared = list([
      [unsigned(locals.i32), TYPE.i32],
      [unsigned(locals.v128), TYPE.v128],
    ])
    return sized([declared, body, END])
  })
  return Uint8Array.from(
    bytesOf([
      MAGIC_AND_VERSION,
      section(1, list(types)),
      section(3, list(functions.map((_, index) => unsigned(index)))),
      // One memory, of one page from the start, and no most.
      section(5, list([[0, 1]])),
      section(7, list([[text('memory'), EXPORT.memory, 0], ...exports])),
      section(10, list(bodies)),
    ]),
  )
}

const section = (id: number, content: Code): Code => [id, sized(content)]
const list = (items: readonly Code[]): Code => [unsigned(items.length), items]
const text = (name: string): Code => sized([...new TextEncoder().encode(name)])

function sized(content: Code): Code {
  const bytes = bytesOf(content)
  return [unsigned(bytes.length), bytes]
}
