import { type ScriptTemplateUnlock, type Transaction, UnlockingScript } from '@bsv/sdk'
import { type MintPlan, preimageView, unlockNode } from './mint-plan.js'

/** Unlocks the node of a plan, as the SDK signs inputs; all outputs have to be there, with their values. */
export class NodeUnlock implements ScriptTemplateUnlock {
  constructor(private readonly plan: MintPlan) {}

  async sign(transaction: Transaction, input: number): Promise<UnlockingScript> {
    return UnlockingScript.fromBinary(Array.from(this.bytes(transaction, input)))
  }

  /** Exactly what it will be: the value of an output does not change its length. */
  async estimateLength(transaction: Transaction, input: number): Promise<number> {
    return this.bytes(transaction, input).length
  }

  private bytes(transaction: Transaction, input: number): Uint8Array {
    return unlockNode({ plan: this.plan, transaction: preimageView(transaction), input })
  }
}
