import { compareWithReal } from '../kit/real-comparison.ts';
import { realNode } from '../kit/real-programs.ts';

compareWithReal(realNode(), 'quick');
