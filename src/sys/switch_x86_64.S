/* SPDX-License-Identifier: MIT */
/* System V ABI: rbx, rbp, r12-r15, rsp, the control bits of MXCSR and the x87 control word belong to the callee
 * (AMD64 ABI 1.0, section 3.2.1). Frame of a parked task, from its saved sp:
 *
 *      0  MXCSR      4  x87 control word, upper half 0
 *      8  r15  16 r14  24 r13  32 r12  40 rbx  48 rbp
 *     56  where to go on
 *
 * It goes on by a ret: the processor's return stack then stays as deep as the calls are, and tasks that park in the
 * same place at the same depth, as most do, are predicted. A jump in its place leaves one entry too many, and every
 * return after it is mispredicted (25 ns a yield instead of 8, measured). MXCSR and control word are loaded only if
 * they differ: loads of them are slow. Shadow stacks are not switched, so the object is marked for indirect branch
 * tracking only. */

        .text

/* The callee-saved state onto the running stack; MXCSR in eax, the control word in ecx. */
.macro save_state
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        movl    $0, 4(%rsp)
        stmxcsr (%rsp)
        fnstcw  4(%rsp)
        movl    (%rsp), %eax
        movl    4(%rsp), %r8d
.endm

/* Control words at (rsp), unless eax and r8d say that they are loaded. The low six bits of MXCSR are flags. */
.macro load_control
        xorl    (%rsp), %eax
        testl   $0xffffffc0, %eax
        jz      1f
        ldmxcsr (%rsp)
1:      cmpl    4(%rsp), %r8d
        je      2f
        fldcw   4(%rsp)
2:
.endm

/* void rs_switch(void **save, void *to); */
        .globl  rs_switch
        .hidden rs_switch
        .type   rs_switch, @function
        .p2align 5
rs_switch:
        .cfi_startproc
        endbr64
        save_state
        movq    %rsp, (%rdi)
        movq    %rsi, %rsp
resume:
        load_control
        movq    8(%rsp), %r15
        movq    16(%rsp), %r14
        movq    24(%rsp), %r13
        movq    32(%rsp), %r12
        movq    40(%rsp), %rbx
        movq    48(%rsp), %rbp
        addq    $56, %rsp
        .cfi_adjust_cfa_offset -56
        ret
        .cfi_endproc
        .size   rs_switch, .-rs_switch

/* void rs_switch_new(void **save, void *top, void *(*entry)(void), uint64_t control);
 * Entered without a ret, and left by one: what is on the processor's return stack when the task ends is what was there
 * when it began. */
        .globl  rs_switch_new
        .hidden rs_switch_new
        .type   rs_switch_new, @function
        .p2align 4
rs_switch_new:
        .cfi_startproc
        endbr64
        save_state
        movq    %rsp, (%rdi)
        .cfi_endproc
        .size   rs_switch_new, .-rs_switch_new

/* The bottom of every task's stack: the unwinder stops here. */
        .type   rs_switch_bottom, @function
rs_switch_bottom:
        .cfi_startproc
        .cfi_undefined %rip
        movq    %rsi, %rsp
        pushq   $0
        pushq   %rcx
        load_control
        xorl    %ebp, %ebp
        callq   *%rdx
        movq    %rax, %rsp
        movl    $0, -4(%rsp)
        stmxcsr -8(%rsp)
        fnstcw  -4(%rsp)
        movl    -8(%rsp), %eax
        movl    -4(%rsp), %r8d
        jmp     resume
        .cfi_endproc
        .size   rs_switch_bottom, .-rs_switch_bottom

/* size_t rs_switch_visit(void *parked, size_t (*fn)(void *arg), void *arg);
 * Nothing is switched: only what the unwinder is told of the caller is not true. While fn runs, this frame says that it
 * was called by the parked context, whose registers lie where save_state has put them. */
        .globl  rs_switch_visit
        .hidden rs_switch_visit
        .type   rs_switch_visit, @function
        .p2align 4
rs_switch_visit:
        .cfi_startproc
        endbr64
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_offset %rbx, -16
        movq    %rdi, %rbx
        movq    %rdx, %rdi
        .cfi_remember_state
        .cfi_def_cfa %rbx, 64
        .cfi_offset %rip, -8
        .cfi_offset %rbp, -16
        .cfi_offset %rbx, -24
        .cfi_offset %r12, -32
        .cfi_offset %r13, -40
        .cfi_offset %r14, -48
        .cfi_offset %r15, -56
        callq   *%rsi
        .cfi_restore_state
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        ret
        .cfi_endproc
        .size   rs_switch_visit, .-rs_switch_visit

/* int rs_switch_call(void *parked, int (*fn)(void *arg), void *arg); */
        .globl  rs_switch_call
        .hidden rs_switch_call
        .type   rs_switch_call, @function
        .p2align 4
rs_switch_call:
        .cfi_startproc
        endbr64
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        movq    %rdi, %rsp
        movq    %rdx, %rdi
        callq   *%rsi
        movq    %rbp, %rsp
        popq    %rbp
        .cfi_def_cfa %rsp, 8
        .cfi_restore %rbp
        ret
        .cfi_endproc
        .size   rs_switch_call, .-rs_switch_call

/* uint64_t rs_switch_control(void); */
        .globl  rs_switch_control
        .hidden rs_switch_control
        .type   rs_switch_control, @function
        .p2align 4
rs_switch_control:
        .cfi_startproc
        endbr64
        movq    $0, -8(%rsp)
        stmxcsr -8(%rsp)
        fnstcw  -4(%rsp)
        movq    -8(%rsp), %rax
        ret
        .cfi_endproc
        .size   rs_switch_control, .-rs_switch_control

/* void rs_switch_control_set(uint64_t control); */
        .globl  rs_switch_control_set
        .hidden rs_switch_control_set
        .type   rs_switch_control_set, @function
        .p2align 4
rs_switch_control_set:
        .cfi_startproc
        endbr64
        movq    %rdi, -8(%rsp)
        movl    $0, -12(%rsp)
        stmxcsr -16(%rsp)
        fnstcw  -12(%rsp)
        movl    -16(%rsp), %eax
        cmpl    -8(%rsp), %eax
        je      1f
        ldmxcsr -8(%rsp)
1:      movl    -12(%rsp), %eax
        cmpl    -4(%rsp), %eax
        je      2f
        fldcw   -4(%rsp)
2:      ret
        .cfi_endproc
        .size   rs_switch_control_set, .-rs_switch_control_set

        .section .note.GNU-stack, "", @progbits
        .section .note.gnu.property, "a"
        .p2align 3
        .long   4, 16, 5
        .asciz  "GNU"
        .long   0xc0000002, 4, 1, 0
